#include "commands/time_series/series_replies.h"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "server/client/client.h"
#include "server/client/output_limits.h"
#include "store/time_series/label_index.h"

namespace latchkey::commands {

using namespace server;
using store::RangeRow;
using store::Sample;
using store::TimeSeries;

namespace {

// Numbers from 10^0 up to below this power of ten are written plainly.
constexpr int kPlainExponents = 16;

std::string value_text(double value) {
  if (std::isnan(value)) return "NaN";
  const std::string sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return sign + "Infinity";
  if (value == 0) return sign + "0";
  constexpr size_t kRoom = 32;
  char text[kRoom];
  const auto end =
      std::to_chars(text, text + kRoom, std::fabs(value), std::chars_format::scientific);
  // "d.ddde+XX"
  const std::string_view written(text, static_cast<size_t>(end.ptr - text));
  const size_t mark = written.find('e');
  const bool has_minus = written[mark + 1] == '-';
  int exponent = 0;
  std::from_chars(written.data() + mark + 2, end.ptr, exponent);
  std::string digits(1, written[0]);
  if (mark > 2) digits += written.substr(2, mark - 2);
  if (!has_minus && exponent < kPlainExponents) {
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0');
    return sign + digits.substr(0, whole) + "." + digits.substr(whole);
  }
  std::string result = sign + digits[0];
  if (digits.size() > 1) result += "." + digits.substr(1);
  return result + (has_minus ? "E-" : "E") + std::to_string(exponent);
}

}  // namespace

void reply_sample_value(CommandContext& ctx, double value) {
  if (ctx.reply.protocol() == 3) return ctx.reply.number(value);
  ctx.reply.status(value_text(value));
}

void reply_sample(CommandContext& ctx, Sample sample) {
  ctx.reply.array(2);
  ctx.reply.integer(sample.timestamp);
  reply_sample_value(ctx, sample.value);
}

void reply_sample_or_nothing(CommandContext& ctx, std::optional<Sample> sample) {
  sample.has_value() ? reply_sample(ctx, *sample) : ctx.reply.empty_array();
}

void reply_row(CommandContext& ctx, const RangeRow& row) {
  ctx.reply.array(1 + row.values.size());
  ctx.reply.integer(row.timestamp);
  for (const double value : row.values) reply_sample_value(ctx, value);
}

void reply_rows(CommandContext& ctx, const TimeSeries& series, const store::RangeQuery& query,
                size_t most) {
  store::RangeReader reader(series, query);
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  size_t sent = 0;
  for (RangeRow row; sent < most && !reply_is_lost(ctx.client) && reader.next(&row); ++sent)
    reply_row(ctx, row);
  ctx.reply.array_later(reply, sent);
}

std::optional<Sample> newest_sample(const TimeSeries& series, bool latest) {
  if (latest && series.index() != nullptr) {
    const std::optional<Sample> open = series.index()->latest(series);
    if (open.has_value() && (series.empty() || open->timestamp > series.last().timestamp))
      return open;
  }
  if (series.empty()) return std::nullopt;
  return series.last();
}

}  // namespace latchkey::commands
