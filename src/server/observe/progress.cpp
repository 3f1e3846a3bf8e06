#include "server/observe/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "base/time_units.h"
#include "server/observe/info.h"

namespace latchkey::server {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

std::string amount(ProgressUnit unit, uint64_t value) {
  return unit == ProgressUnit::kBytes ? human_bytes(value) : std::to_string(value) + " keys";
}

// Without a total, or beyond an estimate, nobody knows.
bool is_measurable(const ProgressFigures& figures) {
  return figures.total != 0 && figures.done <= figures.total;
}

std::string percentage(const ProgressFigures& figures) {
  const double share = static_cast<double>(figures.done) / static_cast<double>(figures.total);
  return std::to_string(static_cast<int>(share * 100)) + " %";
}

std::string rate(const ProgressFigures& figures) {
  const double seconds = static_cast<double>(figures.elapsed_us) / base::kUsPerSecond;
  const auto each = static_cast<uint64_t>(static_cast<double>(figures.done) / seconds);
  return amount(figures.unit, each) + "/s";
}

std::string time_left(const ProgressFigures& figures) {
  const double left = static_cast<double>(figures.total - figures.done) *
                      static_cast<double>(figures.elapsed_us) / static_cast<double>(figures.done);
  return std::to_string(static_cast<int64_t>(left / base::kUsPerSecond + 0.5)) + " s left";
}

size_t width_of(int terminal) {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

std::string progress_line(const ProgressFigures& figures) {
  std::string line(figures.what);
  line.append(": ");
  const bool measurable = is_measurable(figures);
  if (measurable) line.append(percentage(figures)).append(", ");
  line.append(amount(figures.unit, figures.done));
  if (measurable) line.append(" of ").append(amount(figures.unit, figures.total));
  if (figures.elapsed_us > 0) line.append(", ").append(rate(figures));
  if (measurable && figures.done > 0) line.append(", ").append(time_left(figures));
  return line;
}

std::string progress_bar(const ProgressFigures& figures, size_t columns) {
  constexpr size_t kNarrowest = 10;
  std::string behind;
  if (figures.elapsed_us > 0) behind.append("  ").append(rate(figures));
  if (!is_measurable(figures)) {
    return std::string(figures.what) + "  " + amount(figures.unit, figures.done) + behind;
  }
  behind.insert(0, " " + percentage(figures));
  if (figures.done > 0) behind.append("  ").append(time_left(figures));
  const size_t taken = figures.what.size() + std::string_view(" []").size() + behind.size();
  std::string line(figures.what);
  if (columns > taken + kNarrowest) {
    const size_t width = columns - taken - 1;
    const auto full =
        static_cast<size_t>(static_cast<double>(width) * static_cast<double>(figures.done) /
                            static_cast<double>(figures.total));
    line.append(" [").append(full, '#').append(width - full, ' ').append("]");
  }
  return line.append(behind);
}

int progress_terminal() {
  return isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1;
}

Progress::Progress(base::Logger* log, int terminal, std::string what, ProgressUnit unit,
                   uint64_t total, int64_t now_us)
    : log_(log),
      terminal_(terminal),
      what_(std::move(what)),
      unit_(unit),
      total_(total),
      started_us_(now_us),
      next_us_(now_us + base::kUsPerSecond) {
  const bool seen_there =
      terminal_ >= 0 && log_ != nullptr && log_->file().empty() && isatty(log_->standard_stream());
  if (seen_there) log_ = nullptr;
}

Progress::~Progress() {
  if (drawn_) base::write_all(terminal_, kEraseLine);
}

void Progress::show(uint64_t done, int64_t now_us) {
  next_us_ = now_us + base::kUsPerSecond;
  const ProgressFigures figures{what_, unit_, done, total_, now_us - started_us_};
  if (log_ != nullptr) log_->notice(progress_line(figures));
  if (terminal_ < 0) return;
  drawn_ = true;
  base::write_all(terminal_, std::string(kEraseLine) + progress_bar(figures, width_of(terminal_)));
}

}  // namespace latchkey::server
