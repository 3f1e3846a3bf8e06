// Numbers in JSON documents: JSON.NUMINCRBY, JSON.NUMMULTBY, JSON.NUMPOWBY.
#include <cmath>
#include <optional>
#include <string>

#include "commands/groups.h"
#include "commands/json/json_reply.h"
#include "commands/json/json_steps.h"
#include "store/json/json_writer.h"

namespace latchkey::commands {

using namespace server;
using store::JsonDocument;
using store::KeyRef;
using store::json::Node;
using store::json::Trail;
namespace json = store::json;

namespace {

// Two signed integers give an integer, and others a double. False when the integer overflows.
using IntegerOperation = bool (*)(int64_t a, int64_t b, int64_t* result);
using RealOperation = double (*)(double a, double b);

bool is_small_integer(const Node& node) {
  return node.is_integer() && !node.is_huge();
}

// Power by squaring. False for negative exponents as well.
bool integer_power(int64_t base, int64_t exponent, int64_t* result) {
  if (exponent < 0 || exponent > UINT32_MAX) return false;
  int64_t power = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, base, &power)) return false;
    exponent >>= 1;
    if (exponent == 0) break;
    if (__builtin_mul_overflow(base, base, &base)) return false;
  }
  *result = power;
  return true;
}

// Sends an error when there is no result.
std::optional<Node> combine(CommandContext& ctx, const Node& a, const Node& b,
                            IntegerOperation of_integers, RealOperation of_reals) {
  if (is_small_integer(a) && is_small_integer(b)) {
    int64_t result;
    if (of_integers(a.as_int64(), b.as_int64(), &result)) return Node::integer(result);
    return ctx.refuse("ERR numeric overflow", std::nullopt);
  }
  const double result = of_reals(a.as_double(), b.as_double());
  if (std::isfinite(result)) return Node::number(result);
  return ctx.refuse("ERR result is not a number", std::nullopt);
}

// RESP3: an array of numbers, whatever form the path has. RESP2: JSON text.
void reply_numbers(CommandContext& ctx, const ReadPath& path, const Outcomes<Node>& numbers) {
  if (ctx.reply.is_resp3()) {
    return reply_each(ctx, numbers, [&](const Node& number) {
      reply_formatted(ctx, number, ReplyFormat::kExpand);
    });
  }
  if (path.is_legacy) {
    const Node* number = last_of(numbers);
    if (number == nullptr)
      return ctx.reply.error("ERR Path does not exist or does not contains a number");
    return ctx.reply.bulk(json::written(*number));
  }
  std::string text = "[";
  for (const auto& number : numbers) {
    if (text.size() > 1) text += ',';
    text += number ? json::written(*number) : "null";
  }
  ctx.reply.bulk(text + ']');
}

void change_numbers(CommandContext& ctx, std::string_view event, IntegerOperation of_integers,
                    RealOperation of_reals) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  JsonDocument* document = existing_document(ctx, ref);
  if (document == nullptr) return;
  const std::optional<ReadPath> path = read_path(ctx, ctx.args[2]);
  if (!path) return;
  // Read where there is a number to change, as in the reference.
  std::optional<json::Parsed> operand;
  const auto numbers =
      change_each<Node>(ctx, *document, path->path, event, [&](Node& node, Trail, Node* number) {
        if (!node.is_numeric()) return Change::kNone;
        if (!operand) {
          operand = read_value(ctx, ctx.args[3], "ERR ");
          if (!operand) return Change::kFailed;
          if (!operand->root.is_numeric()) return ctx.refuse("bad input number", Change::kFailed);
        }
        std::optional<Node> result = combine(ctx, node, operand->root, of_integers, of_reals);
        if (!result) return Change::kFailed;
        node = std::move(*result);
        *number = node.clone();
        return Change::kDone;
      });
  if (numbers) reply_numbers(ctx, *path, *numbers);
}

void json_numincrby(CommandContext& ctx) {
  change_numbers(
      ctx, "json.numincrby",
      [](int64_t a, int64_t b, int64_t* result) { return !__builtin_add_overflow(a, b, result); },
      [](double a, double b) { return a + b; });
}

void json_nummultby(CommandContext& ctx) {
  change_numbers(
      ctx, "json.nummultby",
      [](int64_t a, int64_t b, int64_t* result) { return !__builtin_mul_overflow(a, b, result); },
      [](double a, double b) { return a * b; });
}

void json_numpowby(CommandContext& ctx) {
  change_numbers(ctx, "json.numpowby", integer_power,
                 [](double a, double b) { return std::pow(a, b); });
}

constexpr CommandRow kJsonNumberRows[] = {
    {"JSON.NUMINCRBY",
     json_numincrby,
     "key path value:double",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Increments numbers of a document.",
     {.module = "ReJSON"}},
    {"JSON.NUMMULTBY",
     json_nummultby,
     "key path value:double",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Multiplies numbers of a document.",
     {.module = "ReJSON"}},
    {"JSON.NUMPOWBY",
     json_numpowby,
     "key path number:double",
     kWrite | kModule,
     keys(1).rw(),
     kAclJson,
     Group::kModule,
     "8.0.0",
     "O(N) where N is what the path visits, O(1) for a single place",
     "Raises numbers of a document to a power.",
     {.module = "ReJSON"}},
};

}  // namespace

std::span<const CommandRow> json_number_rows() {
  return kJsonNumberRows;
}

}  // namespace latchkey::commands
