// Elements of vector sets: VADD, VREM, VEMB, VSETATTR and related commands.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/text/number.h"
#include "commands/groups.h"
#include "commands/keys/typed_key.h"
#include "commands/vector_sets/vector_argument.h"
#include "server/client/output_limits.h"
#include "store/value/vector_set.h"

namespace latchkey::commands {

using namespace server;
using store::KeyRef;
using store::Quantization;
using store::VectorElement;
using store::VectorGraph;
using store::VectorSet;

namespace {

// Changes of vector sets cause no notifications, as in the reference.
void changed(CommandContext& ctx) {
  ctx.changed(ctx.args[1], EventClass::kModule, {});
}

// False with an error sent. Only a very large proto-max-bulk-len lets such texts come.
bool is_short_enough(CommandContext& ctx, std::string_view text) {
  if (text.size() <= VectorSet::kLongestText) return true;
  return ctx.refuse("ERR string exceeds maximum allowed size");
}

std::optional<std::string_view> unless_empty(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// --- VADD ----------------------------------------------------------------------------------------

struct Addition {
  std::vector<float> components;
  std::string_view name;
  // Of the set. Its dimensions are those after a projection.
  VectorSet::Shape shape;
  size_t effort = 200;
  std::optional<std::string_view> attributes;
};

// False with an error sent.
bool read_options(CommandContext& ctx, ArgReader& args, Addition* addition) {
  constexpr int64_t kMaxEffort = 1'000'000;
  std::string_view text;
  int64_t number;
  while (args.more()) {
    if (args.word("CAS")) {
      // There is nothing to do in another thread: the search for neighbours runs here.
    } else if (args.word("NOQUANT")) {
      addition->shape.quantization = Quantization::kFloat;
    } else if (args.word("Q8")) {
      addition->shape.quantization = Quantization::kByte;
    } else if (args.word("BIN")) {
      addition->shape.quantization = Quantization::kBit;
    } else if (args.word("EF", &text)) {
      if (!ctx.read_int64_in(text, 1, kMaxEffort, &number, "ERR invalid EF")) return false;
      addition->effort = static_cast<size_t>(number);
    } else if (args.word("M", &text)) {
      if (!ctx.read_int64_in(text, VectorGraph::kMinLinks, VectorGraph::kMaxLinks, &number,
                             "ERR invalid M"))
        return false;
      addition->shape.links = static_cast<size_t>(number);
    } else if (args.word("SETATTR", &text)) {
      addition->attributes = text;
    } else {
      return ctx.refuse("ERR invalid option after element");
    }
  }
  return true;
}

// False with an error sent.
bool read_addition(CommandContext& ctx, Addition* addition) {
  ArgReader args(ctx.args, 2);
  std::string_view text;
  int64_t reduced = 0;
  const bool is_reduced = args.word("REDUCE", &text);
  std::optional<std::vector<float>> components;
  if (!is_reduced || base::parse_int64(text, &reduced)) components = read_vector(args);
  const bool is_valid =
      components.has_value() &&
      (!is_reduced || (reduced > 0 && static_cast<uint64_t>(reduced) <= components->size()));
  if (!is_valid) {
    invalid_vector(ctx);
    return false;
  }
  if (!args.more()) {
    ctx.wrong_arity();
    return false;
  }
  addition->components = std::move(*components);
  addition->shape.dimensions =
      is_reduced ? static_cast<size_t>(reduced) : addition->components.size();
  addition->shape.input_dimensions = is_reduced ? addition->components.size() : 0;
  if (addition->shape.dimensions * addition->shape.input_dimensions >
      VectorSet::kMaxNewMatrixComponents)
    return ctx.refuse("ERR projection is too large");
  addition->name = args.next();
  return read_options(ctx, args, addition);
}

// Whether the set keeps vectors as the request does. False with an error sent.
bool has_form(CommandContext& ctx, const VectorSet& set, const VectorSet::Shape& shape) {
  if (shape.quantization != set.quantization())
    return ctx.refuse("ERR asked quantization mismatch with existing vector set");
  if (shape.links != set.graph().links_per_level())
    return ctx.refuse("ERR asked M value mismatch with existing vector set");
  return true;
}

// Whether the set can hold a vector with so many components. False with an error sent.
bool has_room_for(CommandContext& ctx, const VectorSet& set, const Addition& addition) {
  const VectorSet::Shape& shape = addition.shape;
  const bool is_reduced = shape.input_dimensions != 0;
  const size_t given = addition.components.size();
  const size_t compared = is_reduced && !set.has_projection() ? given : shape.dimensions;
  if (compared != set.dimensions() || (set.has_projection() && !is_reduced)) {
    dimension_mismatch(ctx, given, set.dimensions());
  } else if (is_reduced && !set.has_projection()) {
    ctx.reply.error("ERR cannot add projection to existing set without projection");
  } else if (shape.input_dimensions != set.input_dimensions()) {
    projection_mismatch(ctx, given, set.input_dimensions());
  } else {
    return true;
  }
  return false;
}

void vadd(CommandContext& ctx) {
  Addition addition;
  if (!read_addition(ctx, &addition) || !is_short_enough(ctx, addition.name) ||
      !is_short_enough(ctx, addition.attributes.value_or(std::string_view())))
    return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ctx.is_type(ref, VectorSet::kType)) return;
  if (ref && (!has_form(ctx, value_of<VectorSet>(ref), addition.shape) ||
              !has_room_for(ctx, value_of<VectorSet>(ref), addition)))
    return;
  VectorSet& set = *value_or_new<VectorSet>(ctx, ref, ctx.db.environment(), addition.shape);
  const bool is_new = set.add(
      addition.name, set.has_projection() ? set.project(addition.components) : addition.components,
      addition.effort, ctx.db.environment().random);
  // As in the reference, a new element has attributes even if they are an empty text, until it
  // comes from a file; of another element an empty text removes them.
  if (addition.attributes.has_value())
    is_new ? set.set_attributes(addition.name, addition.attributes)
           : set.set_attributes(addition.name, unless_empty(*addition.attributes));
  changed(ctx);
  ctx.reply.boolean(is_new);
}

// --- Single elements -----------------------------------------------------------------------------

void vrem(CommandContext& ctx) {
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.boolean(false);
  VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  if (!set->erase(ctx.args[2])) return ctx.reply.boolean(false);
  if (set->size() == 0) ctx.db.erase(ref);
  changed(ctx);
  ctx.reply.boolean(true);
}

void vsetattr(CommandContext& ctx) {
  if (!is_short_enough(ctx, ctx.args[3])) return;
  KeyRef ref = ctx.db.find_for_write(ctx.args[1]);
  if (!ref) return ctx.reply.boolean(false);
  VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  if (set->find(ctx.args[2]) == nullptr) return ctx.reply.boolean(false);
  set->set_attributes(ctx.args[2], unless_empty(ctx.args[3]));
  changed(ctx);
  ctx.reply.boolean(true);
}

// The element that the request names, or null: then a reply has been sent, for there is no such
// element a null.
const VectorElement* named_element(CommandContext& ctx, const KeyRef& ref) {
  if (!ctx.is_type(ref, VectorSet::kType)) return nullptr;
  const VectorElement* element = ref ? value_of<VectorSet>(ref).find(ctx.args[2]) : nullptr;
  if (element == nullptr) ctx.reply.null();
  return element;
}

void vgetattr(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const VectorElement* element = named_element(ctx, ref);
  if (element == nullptr) return;
  element->has_attributes() ? ctx.reply.bulk(element->attributes()) : ctx.reply.null();
}

void vismember(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, VectorSet::kType)) return;
  ctx.reply.boolean(ref && value_of<VectorSet>(ref).find(ctx.args[2]) != nullptr);
}

void reply_raw(CommandContext& ctx, const VectorSet& set, const VectorElement& element) {
  const store::QuantizedVector vector = set.vector(element);
  const bool has_range = set.quantization() == Quantization::kByte;
  ctx.reply.array(has_range ? 4 : 3);
  ctx.reply.status(store::quantization_name(set.quantization()));
  ctx.reply.bulk(std::string_view(vector.bytes, set.graph().distance().vector_size()));
  ctx.reply.number(vector.length);
  if (has_range) ctx.reply.number(vector.range);
}

void vemb(CommandContext& ctx) {
  const Arguments options = ctx.args.subspan(3);
  const bool is_raw = !options.empty();
  if (!std::ranges::all_of(options, [](std::string_view word) { return is_word(word, "RAW"); }))
    return ctx.reply.error("ERR invalid option");
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const VectorElement* element = named_element(ctx, ref);
  if (element == nullptr) return;
  const auto& set = value_of<VectorSet>(ref);
  if (is_raw) return reply_raw(ctx, set, *element);
  const std::vector<float> components = set.components(*element);
  ctx.reply.array(components.size());
  for (const float component : components) ctx.reply.number(component);
}

void vlinks(CommandContext& ctx) {
  const bool with_scores = ctx.args.size() == 4 && is_word(ctx.args[3], "WITHSCORES");
  if (ctx.args.size() > 3 && !with_scores) return ctx.wrong_arity();
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  const VectorElement* element = named_element(ctx, ref);
  if (element == nullptr) return;
  const auto& set = value_of<VectorSet>(ref);
  const VectorGraph& graph = set.graph();
  const unsigned top = graph.level(element->slot);
  ctx.reply.array(top + 1);
  for (unsigned level = top + 1; level-- > 0;) {
    const auto links = graph.links(element->slot, level);
    with_scores ? ctx.reply.map(links.size()) : ctx.reply.array(links.size());
    for (const VectorGraph::Slot link : links) {
      ctx.reply.bulk(set.element(link).name());
      if (with_scores) ctx.reply.number(similarity(graph.distance_between(element->slot, link)));
    }
  }
}

// --- The set -------------------------------------------------------------------------------------

void vcard(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ctx.is_type(ref, VectorSet::kType)) return;
  ctx.reply.integer(ref ? static_cast<int64_t>(value_of<VectorSet>(ref).size()) : 0);
}

void vdim(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.error("ERR key does not exist");
  const VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set != nullptr) ctx.reply.integer(static_cast<int64_t>(set->dimensions()));
}

void vinfo(CommandContext& ctx) {
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.null_array();
  const VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  const auto field = [&](std::string_view name, uint64_t value) {
    ctx.reply.status(name);
    ctx.reply.integer(static_cast<int64_t>(value));
  };
  ctx.reply.map(9);
  ctx.reply.status("quant-type");
  ctx.reply.status(store::quantization_name(set->quantization()));
  field("hnsw-m", set->graph().links_per_level());
  field("vector-dim", set->dimensions());
  field("projection-input-dim", set->input_dimensions());
  field("size", set->size());
  field("max-level", set->graph().top_level());
  field("attributes-count", set->attribute_count());
  field("vset-uid", set->number());
  field("hnsw-max-node-uid", set->vectors_added());
}

// Slots of `count` different elements, all choices equally likely (R. Floyd, in J. Bentley,
// "Programming Pearls", CACM 9/1987).
std::vector<VectorGraph::Slot> choose(const VectorSet& set, size_t count, base::Random& random) {
  std::vector<VectorGraph::Slot> chosen;
  std::unordered_set<VectorGraph::Slot> seen;
  for (size_t left = set.size() - count; left < set.size(); ++left) {
    auto slot = static_cast<VectorGraph::Slot>(random.below(left + 1));
    if (!seen.insert(slot).second) {
      slot = static_cast<VectorGraph::Slot>(left);
      seen.insert(slot);
    }
    chosen.push_back(slot);
  }
  return chosen;
}

void vrandmember(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.wrong_arity();
  const bool is_counted = ctx.args.size() == 3;
  int64_t count = 1;
  if (is_counted && !ctx.read_int64_in(ctx.args[2], -INT64_MAX, INT64_MAX, &count,
                                       "ERR COUNT value is not an integer"))
    return;
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return is_counted ? ctx.reply.empty_array() : ctx.reply.null();
  const VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  base::Random& random = ctx.db.environment().random;
  if (!is_counted) return ctx.reply.bulk(set->random(random).name());
  if (count < 0) {
    const auto repeats = static_cast<uint64_t>(-count);
    ctx.reply.array(repeats);
    for (uint64_t i = 0; i < repeats && !reply_is_lost(ctx.client); ++i)
      ctx.reply.bulk(set->random(random).name());
    return;
  }
  const auto wanted = std::min(static_cast<uint64_t>(count), static_cast<uint64_t>(set->size()));
  ctx.reply.array(wanted);
  for (const VectorGraph::Slot slot : choose(*set, wanted, random))
    ctx.reply.bulk(set->element(slot).name());
}

// --- VRANGE --------------------------------------------------------------------------------------

// One end of a range of names: open at both ends of all names.
struct NameBound {
  bool is_unbounded = false;
  bool is_inclusive = true;
  std::string_view name;
};

// False with an error sent. `which`: "start" or "end", for it.
bool read_bound(CommandContext& ctx, std::string_view text, std::string_view which,
                NameBound* bound) {
  bound->is_unbounded = text == "-" || text == "+";
  if (bound->is_unbounded) return true;
  if (text.size() < 2 || (text[0] != '[' && text[0] != '(')) {
    return ctx.refuse("ERR invalid " + std::string(which) + " range format");
  }
  bound->is_inclusive = text[0] == '[';
  bound->name = text.substr(1);
  return true;
}

void vrange(CommandContext& ctx) {
  if (ctx.args.size() > 5) return ctx.wrong_arity();
  int64_t count = -1;
  if (ctx.args.size() == 5 && !ctx.read_int64(ctx.args[4], &count, "ERR invalid COUNT value"))
    return;
  NameBound from;
  NameBound to;
  if (!read_bound(ctx, ctx.args[2], "start", &from) || !read_bound(ctx, ctx.args[3], "end", &to))
    return;
  if (ctx.args[2] == "+" || ctx.args[3] == "-")
    return ctx.reply.error("ERR '-' can only be used as first argument, '+' only as second");
  const KeyRef ref = ctx.db.find(ctx.args[1]);
  if (!ref) return ctx.reply.empty_array();
  const VectorSet* set = value_at<VectorSet>(ctx, ref);
  if (set == nullptr) return;
  const resp::ReplyBuilder::Later reply = ctx.reply.later();
  size_t sent = 0;
  const size_t most = count < 0 ? SIZE_MAX : static_cast<size_t>(count);
  if (most > 0) {
    set->range(from.name, from.is_inclusive, [&](const VectorElement& element) {
      const int order = to.is_unbounded ? -1 : element.name().compare(to.name);
      if (order > 0 || (order == 0 && !to.is_inclusive)) return false;
      ctx.reply.bulk(element.name());
      return ++sent < most;
    });
  }
  ctx.reply.array_later(reply, sent);
}

constexpr CommandRow kVectorSetRows[] = {
    {"VADD", vadd,
     "key [REDUCE dim:integer] {format=FP32|VALUES} vector element [CAS] "
     "[quant_type=NOQUANT|BIN|Q8] [EF build-exploration-factor:integer] [SETATTR attributes] "
     "[M numlinks:integer] [_...]",
     kWrite | kDenyOom | kModule, keys(1).rw().access().update(), 0, Group::kModule, "8.0.0",
     nullptr,
     "Adds an element with its vector to a vector set, or gives an element another vector. Creates "
     "the key if it doesn't exist."},
    {"VCARD", vcard, "key", kReadOnly | kModule | kFast, keys(1).rw().access().update(), 0,
     Group::kModule, "8.0.0", nullptr, "Returns the number of elements in a vector set."},
    {"VDIM", vdim, "key", kReadOnly | kModule | kFast, keys(1).rw().access().update(), 0,
     Group::kModule, "8.0.0", nullptr,
     "Returns the number of components of the vectors in a vector set."},
    {"VEMB",
     vemb,
     "key element [RAW] [_...]",
     kReadOnly | kModule | kFast,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.0.0",
     nullptr,
     "Returns the vector of an element.",
     {.element = 2}},
    {"VGETATTR",
     vgetattr,
     "key element",
     kReadOnly | kModule | kFast,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.0.0",
     nullptr,
     "Returns the attributes of an element.",
     {.element = 2}},
    {"VINFO", vinfo, "key", kReadOnly | kModule | kFast, keys(1).rw().access().update(), 0,
     Group::kModule, "8.0.0", nullptr, "Returns information about a vector set."},
    {"VISMEMBER",
     vismember,
     "key element",
     kReadOnly | kModule,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.2.0",
     nullptr,
     "Determines whether an element is in a vector set.",
     {.element = 2}},
    {"VLINKS",
     vlinks,
     "key element [WITHSCORES] [_...]",
     kReadOnly | kModule | kFast,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.0.0",
     nullptr,
     "Returns the neighbours of an element on each level of the graph.",
     {.element = 2}},
    {"VRANDMEMBER", vrandmember, "key [count] [_...]", kReadOnly | kModule,
     keys(1).rw().access().update(), 0, Group::kModule, "8.0.0", nullptr,
     "Returns one or more random elements of a vector set."},
    {"VRANGE", vrange, "key start end [count] [_...]", kReadOnly | kModule,
     keys(1).rw().access().update(), 0, Group::kModule, "8.4.0", nullptr,
     "Returns elements of a vector set within a lexicographical range."},
    {"VREM",
     vrem,
     "key element",
     kWrite | kModule,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.0.0",
     nullptr,
     "Removes an element from a vector set. Deletes the key if it was the last.",
     {.element = 2}},
    {"VSETATTR",
     vsetattr,
     "key element json",
     kWrite | kModule | kFast,
     keys(1).rw().access().update(),
     0,
     Group::kModule,
     "8.0.0",
     nullptr,
     "Sets the attributes of an element, or removes them.",
     {.element = 2}},
};

}  // namespace

std::span<const CommandRow> vector_set_rows() {
  return kVectorSetRows;
}

}  // namespace latchkey::commands
