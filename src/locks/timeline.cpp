#include "locks/timeline.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "locks/lock_text.h"

namespace latchkey::locks {

namespace {

enum class Doing : uint8_t { kHolding, kWaiting };

struct Stretch {
  // One that ended, by a clock that was set back, before it began lies between the two times.
  Stretch(Doing what, int64_t began_ms, int64_t ended_ms)
      : doing(what), from_ms(std::min(began_ms, ended_ms)), to_ms(std::max(began_ms, ended_ms)) {}

  Doing doing;
  int64_t from_ms;
  int64_t to_ms;
};

// What happened at a moment.
struct Mark {
  char sign;
  int64_t time_ms;
};

struct Row {
  uint64_t client;
  std::string label;
  std::vector<Stretch> stretches = {};
  std::vector<Mark> marks = {};
  std::optional<int64_t> waits_since_ms = {};
};

struct Legend {
  char sign;
  std::string_view words;
};
constexpr Legend kLegend[] = {
    {'=', "held"},           {'.', "waiting"},
    {'x', "refused"},        {'>', "deadline moved"},
    {'R', "released"},       {'D', "deleted by another"},
    {'E', "expired"},        {'T', "taken over"},
    {'O', "overwritten"},    {'L', "released too late"},
    {'V', "evicted"},        {'F', "flushed"},
    {'/', "disconnected"},   {'?', "came back"},
    {'+', "taken again"},    {'-', "left once"},
    {'*', "tokens made"},    {'^', "token taken"},
    {'v', "token put back"},
};

constexpr size_t kMaxRows = 40;
constexpr size_t kMaxFindingsShown = 26;  // as there are letters

struct Picture {
  int64_t from_ms = 0;
  int64_t to_ms = 0;
  std::vector<Row> rows;
  std::vector<const Finding*> findings;
};

// Reads the log in order and collects what each client did.
class PictureMaker {
 public:
  explicit PictureMaker(Picture& picture) : picture_(picture) {}

  void add(const Event& event) {
    using enum EventKind;
    switch (event.kind) {
      case kTaken:
        return take(event);
      case kRefused:
        return refuse(event);
      case kDeadlineSet:
      case kProlonged:
      case kProlongedByLoser:
      case kPersisted:
        return mark(event.client, '>', event.time_ms);
      case kReleasedByComparison:
      case kReleasedBlind:
        return release(event, 'R');
      case kReleasedByStranger:
        return lose(event, 'D');
      case kExpired:
        return lose(event, 'E');
      case kTakenOver:
        lose(event, 'T');
        return take(event);
      case kOverwritten:
        lose(event, 'O');
        return take(event);
      case kEvicted:
        return lose(event, 'V');
      case kFlushed:
        return lose(event, 'F');
      case kReleasedLate:
        return mark(event.client, 'L', event.time_ms);
      case kTakeoverLost:
        return mark(event.client, 'x', event.time_ms);
      case kHolderGone:
        return mark(event.client, '/', event.time_ms);
      case kCameBack:
        return mark(event.client, '?', event.time_ms);
      case kReentered:
        return mark(event.client, '+', event.time_ms);
      case kLeft:
        return mark(event.client, '-', event.time_ms);
      case kTokenTaken:
        return mark(event.client, '^', event.time_ms);
      case kTokenReturned:
        return mark(event.client, 'v', event.time_ms);
      case kTokensMade:
        return mark(event.client, '*', event.time_ms);
    }
  }

  void end(int64_t now_ms) {
    stop_holding(now_ms);
    for (Row& row : picture_.rows) {
      if (row.waits_since_ms) stop_waiting(row, std::min(now_ms, last_seen(row)));
    }
  }

 private:
  Row* row_of(const PartyRef& client) {
    if (client == nullptr) return nullptr;
    auto& rows = picture_.rows;
    const auto it = std::find_if(rows.begin(), rows.end(),
                                 [&](const Row& row) { return row.client == client->id; });
    if (it != rows.end()) return &*it;
    if (rows.size() == kMaxRows) return nullptr;
    return &rows.emplace_back(Row{.client = client->id, .label = printable(client->shown())});
  }
  // REQUIRES: it waits.
  static int64_t last_seen(const Row& row) {
    return row.marks.empty() ? *row.waits_since_ms : row.marks.back().time_ms;
  }
  void mark(const PartyRef& client, char sign, int64_t time_ms) {
    if (Row* row = row_of(client)) row->marks.push_back({sign, time_ms});
  }
  void take(const Event& event) {
    stop_holding(event.time_ms);
    Row* row = row_of(event.client);
    holds_since_ms_ = event.time_ms;
    holder_ = event.client;
    if (row != nullptr) stop_waiting(*row, event.time_ms);
  }
  void refuse(const Event& event) {
    Row* row = row_of(event.client);
    if (row == nullptr) return;
    if (!row->waits_since_ms) row->waits_since_ms = event.time_ms;
    row->marks.push_back({'x', event.time_ms});
    if (event.last_ms != event.time_ms) row->marks.push_back({'x', event.last_ms});
  }
  void release(const Event& event, char sign) {
    stop_holding(event.time_ms);
    mark(event.client, sign, event.time_ms);
  }
  // The event is of another client than the holder.
  void lose(const Event& event, char sign) {
    const PartyRef loser = holder_;
    stop_holding(event.time_ms);
    mark(loser, sign, event.time_ms);
  }
  void stop_holding(int64_t time_ms) {
    if (holder_ == nullptr) return;
    if (Row* row = row_of(holder_))
      row->stretches.emplace_back(Doing::kHolding, holds_since_ms_, time_ms);
    holder_ = nullptr;
  }
  static void stop_waiting(Row& row, int64_t time_ms) {
    if (!row.waits_since_ms) return;
    row.stretches.emplace_back(Doing::kWaiting, *row.waits_since_ms, time_ms);
    row.waits_since_ms.reset();
  }

  Picture& picture_;
  PartyRef holder_;
  int64_t holds_since_ms_ = 0;
};

Picture make_picture(const LockModel& model, const Record& record, int64_t now_ms,
                     const TimelineOptions& options) {
  Picture picture;
  PictureMaker maker(picture);
  std::optional<int64_t> first_ms;
  for (const Event& event : model.log()) {
    if (!(*event.place == *record.place)) continue;
    first_ms = std::min(first_ms.value_or(event.time_ms), event.time_ms);
    maker.add(event);
  }
  maker.end(now_ms);
  picture.from_ms = first_ms.value_or(now_ms);
  if (options.last_ms) picture.from_ms = std::max(picture.from_ms, now_ms - *options.last_ms);
  picture.to_ms = std::max(now_ms, picture.from_ms + 1);
  for (const Finding& finding : model.findings()) {
    const bool here = *finding.place == *record.place && finding.last_ms >= picture.from_ms;
    if (here && picture.findings.size() < kMaxFindingsShown) picture.findings.push_back(&finding);
  }
  return picture;
}

// --- Text ---------------------------------------------------------------------------------------

// Which column a moment is in.
struct Scale {
  int64_t from_ms;
  int64_t to_ms;
  size_t columns;
  // Beyond the last one where the moment lies behind the picture, nothing where it lies before.
  std::optional<size_t> column(int64_t time_ms) const {
    if (time_ms < from_ms) return std::nullopt;
    const auto span = static_cast<double>(to_ms - from_ms);
    const double share = static_cast<double>(time_ms - from_ms) / span;
    return std::min(static_cast<size_t>(share * static_cast<double>(columns)), columns - 1);
  }
};

std::string draw_row(const Row& row, const Scale& scale) {
  std::string line(scale.columns, ' ');
  for (const Doing doing : {Doing::kWaiting, Doing::kHolding}) {
    for (const Stretch& stretch : row.stretches) {
      const auto last = scale.column(stretch.to_ms);
      if (stretch.doing != doing || !last) continue;
      const size_t first = scale.column(stretch.from_ms).value_or(0);
      std::fill(line.begin() + static_cast<std::ptrdiff_t>(first),
                line.begin() + static_cast<std::ptrdiff_t>(*last) + 1,
                doing == Doing::kHolding ? '=' : '.');
    }
  }
  for (const Mark& mark : row.marks) {
    const auto column = scale.column(mark.time_ms);
    // An attempt does not hide what it led to.
    if (column && (mark.sign != 'x' || line[*column] == ' ' || line[*column] == '.'))
      line[*column] = mark.sign;
  }
  return line;
}

std::string wrapped(std::string_view first, std::string_view text, size_t width) {
  std::string result(first);
  size_t column = result.size();
  for (size_t start = 0; start < text.size();) {
    size_t end = std::min(text.find(' ', start), text.size());
    end = std::min(end, start + width - 3);  // a word that is too long for a line
    if (column + 1 + (end - start) > width) {
      result += "\n ";
      column = 1;
    }
    result += ' ';
    result += text.substr(start, end - start);
    column += 1 + end - start;
    start = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return result + '\n';
}

std::string legend_of(const Picture& picture, size_t width) {
  std::string signs;
  for (const Row& row : picture.rows) {
    for (const Mark& mark : row.marks) signs += mark.sign;
    for (const Stretch& stretch : row.stretches)
      signs += stretch.doing == Doing::kHolding ? '=' : '.';
  }
  std::string text;
  for (const Legend& legend : kLegend) {
    if (signs.find(legend.sign) == std::string::npos) continue;
    text +=
        (text.empty() ? "" : "   ") + std::string(1, legend.sign) + " " + std::string(legend.words);
  }
  return text.empty() ? text : wrapped("", text, width);
}

std::string cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most - 1)) + "~";
}

}  // namespace

std::string draw_timeline(const LockModel& model, const Record& record, int64_t now_ms,
                          const TimelineOptions& options) {
  constexpr size_t kLongestLabel = 16;
  const Picture picture = make_picture(model, record, now_ms, options);
  size_t label = 4;
  for (const Row& row : picture.rows) label = std::max(label, row.label.size());
  label = std::min(label, kLongestLabel);
  const Scale scale{picture.from_ms, picture.to_ms, options.width - label - 3};
  std::string text = cut(printable(record.place->key), options.width) + '\n';
  text += cut(date_and_time(picture.from_ms) + " to " + date_and_time(picture.to_ms) + ", " +
                  duration(picture.to_ms - picture.from_ms),
              options.width) +
          '\n';
  for (const Row& row : picture.rows) {
    std::string name = cut(row.label, label);
    name.resize(label, ' ');
    text += name + " |" + draw_row(row, scale) + "|\n";
  }
  if (!picture.findings.empty()) {
    std::string line(scale.columns, ' ');
    for (size_t i = 0; i < picture.findings.size(); ++i) {
      if (const auto column = scale.column(picture.findings[i]->last_ms))
        line[*column] = static_cast<char>('a' + i);
    }
    text += std::string(label, ' ') + " |" + line + "|\n";
  }
  text += legend_of(picture, options.width);
  for (size_t i = 0; i < picture.findings.size(); ++i) {
    const Finding& finding = *picture.findings[i];
    text += wrapped(std::string(1, static_cast<char>('a' + i)) + " " +
                        std::string(description_of(finding.kind).name) + ":",
                    printable(finding.evidence), options.width);
  }
  return text;
}

// --- SVG ----------------------------------------------------------------------------------------

namespace {

constexpr int64_t kLeft = 170;
constexpr int64_t kPlot = 760;
constexpr int64_t kWhole = kLeft + kPlot + 30;
constexpr int64_t kTop = 70;
constexpr int64_t kRowHeight = 28;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string svg_text(int64_t x, int64_t y, std::string_view text, std::string_view style = "") {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\"" +
         std::string(style) + ">" + escaped(text) + "</text>\n";
}

std::string svg_box(int64_t x, int64_t y, int64_t width, int64_t height, std::string_view colour,
                    std::string_view title) {
  return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
         std::to_string(std::max<int64_t>(width, 1)) + "\" height=\"" + std::to_string(height) +
         "\" fill=\"" + std::string(colour) + "\"><title>" + escaped(title) + "</title></rect>\n";
}

std::string_view name_of_sign(char sign) {
  const auto* const legend = std::find_if(std::begin(kLegend), std::end(kLegend),
                                          [&](const Legend& one) { return one.sign == sign; });
  return legend == std::end(kLegend) ? std::string_view() : legend->words;
}

std::string svg_row(const Row& row, const Scale& scale, int64_t y) {
  std::string text = svg_text(10, y + 14, row.label);
  for (const Stretch& stretch : row.stretches) {
    const auto last = scale.column(stretch.to_ms);
    if (!last) continue;
    const auto first = static_cast<int64_t>(scale.column(stretch.from_ms).value_or(0));
    const bool holds = stretch.doing == Doing::kHolding;
    text += svg_box(kLeft + first, holds ? y : y + 7, static_cast<int64_t>(*last) - first,
                    holds ? 20 : 6, holds ? "#4a90d9" : "#d8d8d8",
                    std::string(holds ? "held " : "waiting ") + clock_time(stretch.from_ms) +
                        " to " + clock_time(stretch.to_ms));
  }
  for (const Mark& mark : row.marks) {
    const auto column = scale.column(mark.time_ms);
    if (!column) continue;
    text += "<g><title>" + escaped(name_of_sign(mark.sign)) + " " + clock_time(mark.time_ms) +
            "</title>" +
            svg_text(kLeft + static_cast<int64_t>(*column), y + 14, std::string(1, mark.sign),
                     mark.sign == 'x' ? " fill=\"#999\"" : " font-weight=\"bold\"") +
            "</g>\n";
  }
  return text;
}

}  // namespace

std::string draw_timeline_svg(const LockModel& model, const Record& record, int64_t now_ms,
                              const TimelineOptions& options) {
  const Picture picture = make_picture(model, record, now_ms, options);
  const Scale scale{picture.from_ms, picture.to_ms, static_cast<size_t>(kPlot)};
  std::string body = svg_text(10, 24, record.place->key, " font-size=\"16\" font-weight=\"bold\"");
  body += svg_text(10, 44,
                   date_and_time(picture.from_ms) + " to " + date_and_time(picture.to_ms) + ", " +
                       duration(picture.to_ms - picture.from_ms));
  int64_t y = kTop;
  for (const Row& row : picture.rows) {
    body += svg_row(row, scale, y);
    y += kRowHeight;
  }
  for (size_t i = 0; i < picture.findings.size(); ++i) {
    const Finding& finding = *picture.findings[i];
    const std::string sign(1, static_cast<char>('a' + i));
    if (const auto column = scale.column(finding.last_ms)) {
      const std::string x = std::to_string(kLeft + static_cast<int64_t>(*column));
      body += "<line x1=\"" + x + "\" y1=\"" + std::to_string(kTop - 6) + "\" x2=\"" + x +
              "\" y2=\"" + std::to_string(y) + "\" stroke=\"#c0392b\"/>\n";
      body +=
          svg_text(kLeft + static_cast<int64_t>(*column) - 3, y + 12, sign, " fill=\"#c0392b\"");
    }
  }
  y += kRowHeight;
  for (size_t i = 0; i < picture.findings.size(); ++i) {
    const Finding& finding = *picture.findings[i];
    body += svg_text(10, y,
                     std::string(1, static_cast<char>('a' + i)) + " " +
                         std::string(description_of(finding.kind).name) + ": " + finding.evidence);
    y += 18;
  }
  const std::string height = std::to_string(y + 10);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(kWhole) +
         "\" height=\"" + height + "\" viewBox=\"0 0 " + std::to_string(kWhole) + " " + height +
         "\" font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"white\"/>\n" +
         body + "</svg>\n";
}

}  // namespace latchkey::locks
