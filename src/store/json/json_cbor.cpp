#include "store/json/json_cbor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "store/json/json_parser.h"
#include "store/json/json_precision.h"

namespace latchkey::store::json {

namespace {

enum class Major : uint8_t { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kSimple };

// Of typed arrays, little-endian.
constexpr uint64_t kSigned8 = 72;
constexpr uint64_t kSigned16 = 77;
constexpr uint64_t kSigned32 = 78;
constexpr uint64_t kSigned64 = 79;
constexpr uint64_t kUnsigned8 = 64;
constexpr uint64_t kUnsigned16 = 69;
constexpr uint64_t kUnsigned32 = 70;
constexpr uint64_t kUnsigned64 = 71;
constexpr uint64_t kFloat16 = 84;
constexpr uint64_t kFloat32 = 85;
constexpr uint64_t kFloat64 = 86;
constexpr uint64_t kBrainFloat16 = 0x10000;

class Reader {
 public:
  Reader(std::string_view bytes, size_t max_depth, uint64_t seed)
      : rest_(bytes), max_depth_(max_depth), seed_(seed) {}

  base::Result<Node> read() {
    Node root;
    if (value(&root) && !rest_.empty()) fail("trailing bytes");
    if (!problem_.empty()) return base::fail(std::string(problem_));
    return root;
  }

 private:
  struct Head {
    Major major;
    uint8_t info;  // the lower five bits of the first byte
    uint64_t argument;
  };

  bool fail(std::string_view problem) {
    problem_ = problem;
    return false;
  }

  bool head(Head* head) {
    constexpr uint8_t kDirect = 24;
    constexpr uint8_t kEightBytes = 27;
    if (rest_.empty()) return fail("it ends early");
    const auto first = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    head->major = static_cast<Major>(first >> 5);
    head->info = first & 31;
    head->argument = head->info;
    if (head->info < kDirect) return true;
    if (head->info > kEightBytes) return fail("it has lengths that are not known");
    const size_t size = size_t{1} << (head->info - kDirect);
    if (rest_.size() < size) return fail("it ends early");
    head->argument = 0;
    for (size_t i = 0; i < size; ++i)
      head->argument = head->argument << 8 | static_cast<uint8_t>(rest_[i]);
    rest_.remove_prefix(size);
    return true;
  }

  bool take(uint64_t size, std::string_view* bytes) {
    if (size > rest_.size()) return fail("it ends early");
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool value(Node* node) {
    Head head;
    if (!this->head(&head)) return false;
    switch (head.major) {
      case Major::kUnsigned:
        *node = Node::unsigned_integer(head.argument);
        return true;
      case Major::kNegative:
        if (head.argument > INT64_MAX) return fail("a number is out of range");
        *node = Node::integer(-1 - static_cast<int64_t>(head.argument));
        return true;
      case Major::kText:
        return text(head.argument, node);
      case Major::kArray:
        return array(head.argument, node);
      case Major::kMap:
        return map(head.argument, node);
      case Major::kTag:
        return typed_array(head.argument, node);
      case Major::kSimple:
        return simple(head, node);
      case Major::kBytes:
        break;
    }
    return fail("it has parts of an unknown kind");
  }

  bool text(uint64_t size, Node* node, bool is_key = false) {
    std::string_view bytes;
    if (!take(size, &bytes)) return false;
    if (!is_valid_utf8(bytes)) return fail("a text is not UTF-8");
    if (bytes.size() > Node::kLongestText) return fail("a text is too long");
    *node = is_key ? keys_.key(bytes) : Node::string(bytes);
    return true;
  }

  // Each element takes a byte at least, so that the bytes bound what is made of them.
  bool enter(uint64_t size) {
    if (depth_ == max_depth_) return fail("it is nested too deep");
    if (size > rest_.size()) return fail("it ends early");
    ++depth_;
    return true;
  }

  bool array(uint64_t size, Node* node) {
    if (!enter(size)) return false;
    const size_t first = nodes_.size();
    for (uint64_t i = 0; i < size; ++i) {
      Node element;
      if (!value(&element)) return false;
      nodes_.push_back(std::move(element));
    }
    *node = Node::array(std::span(nodes_).subspan(first));
    nodes_.resize(first);
    --depth_;
    return true;
  }

  bool map(uint64_t size, Node* node) {
    if (!enter(size)) return false;
    const size_t first = members_.size();
    for (uint64_t i = 0; i < size; ++i) {
      Member member;
      Head head;
      if (!this->head(&head)) return false;
      if (head.major != Major::kText) return fail("a key is not a text");
      if (!text(head.argument, &member.key, /*is_key=*/true) || !value(&member.value)) return false;
      members_.push_back(std::move(member));
    }
    *node = Node::object(std::span(members_).subspan(first), seed_);
    members_.resize(first);
    --depth_;
    return true;
  }

  bool real(double number, Node* node) {
    if (!std::isfinite(number)) return fail("a number is not finite");
    *node = Node::number(number);
    return true;
  }

  bool simple(const Head& head, Node* node) {
    constexpr uint8_t kFalse = 20;
    constexpr uint8_t kTrue = 21;
    constexpr uint8_t kNull = 22;
    constexpr uint8_t kHalf = 25;
    constexpr uint8_t kSingle = 26;
    constexpr uint8_t kDouble = 27;
    switch (head.info) {
      case kFalse:
      case kTrue:
        *node = Node::boolean(head.info == kTrue);
        return true;
      case kNull:
        *node = Node();
        return true;
      case kHalf:
        return real(from_16_bits(static_cast<uint16_t>(head.argument), Precision::kHalf), node);
      case kSingle:
        return real(std::bit_cast<float>(static_cast<uint32_t>(head.argument)), node);
      case kDouble:
        return real(std::bit_cast<double>(head.argument), node);
      default:
        return fail("it has parts of an unknown kind");
    }
  }

  // --- Typed arrays -----------------------------------------------------------------------------

  template <typename T, typename Make>
  bool elements(std::string_view bytes, Node* node, Make&& make) {
    if (bytes.size() % sizeof(T) != 0) return fail("an array ends within a number");
    std::vector<Node> nodes;
    nodes.reserve(bytes.size() / sizeof(T));
    for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
      T element;
      std::memcpy(&element, bytes.data() + at, sizeof element);
      Node made;
      if (!make(element, &made)) return false;
      nodes.push_back(std::move(made));
    }
    *node = Node::array(nodes);
    return true;
  }

  template <typename T>
  bool integers(std::string_view bytes, Node* node) {
    return elements<T>(bytes, node, [](T number, Node* made) {
      if constexpr (std::is_signed_v<T>)
        *made = Node::integer(number);
      else
        *made = Node::unsigned_integer(number);
      return true;
    });
  }

  bool halves(std::string_view bytes, Precision precision, Node* node) {
    return elements<uint16_t>(bytes, node, [&](uint16_t bits, Node* made) {
      const double number = from_16_bits(bits, precision);
      return real(std::isfinite(number) ? shortest(number, precision) : number, made);
    });
  }

  bool typed_array(uint64_t tag, Node* node) {
    Head head;
    std::string_view bytes;
    if (!this->head(&head)) return false;
    if (head.major != Major::kBytes) return fail("it has parts of an unknown kind");
    if (depth_ == max_depth_) return fail("it is nested too deep");
    if (!take(head.argument, &bytes)) return false;
    switch (tag) {
      case kSigned8:
        return integers<int8_t>(bytes, node);
      case kSigned16:
        return integers<int16_t>(bytes, node);
      case kSigned32:
        return integers<int32_t>(bytes, node);
      case kSigned64:
        return integers<int64_t>(bytes, node);
      case kUnsigned8:
        return integers<uint8_t>(bytes, node);
      case kUnsigned16:
        return integers<uint16_t>(bytes, node);
      case kUnsigned32:
        return integers<uint32_t>(bytes, node);
      case kUnsigned64:
        return integers<uint64_t>(bytes, node);
      case kFloat16:
        return halves(bytes, Precision::kHalf, node);
      case kBrainFloat16:
        return halves(bytes, Precision::kBrain16, node);
      case kFloat32:
        return elements<float>(bytes, node, [&](float number, Node* made) {
          return real(std::isfinite(number) ? shortest(number, Precision::kSingle) : number, made);
        });
      case kFloat64:
        return elements<double>(bytes, node,
                                [&](double number, Node* made) { return real(number, made); });
      default:
        return fail("it has an array of an unknown type");
    }
  }

  std::string_view rest_;
  size_t max_depth_;
  uint64_t seed_;
  size_t depth_ = 0;
  std::string_view problem_;
  std::vector<Node> nodes_;
  std::vector<Member> members_;
  KeyCache keys_;
};

}  // namespace

base::Result<Node> parse_cbor(std::string_view bytes, size_t max_depth, uint64_t seed) {
  return Reader(bytes, max_depth, seed).read();
}

}  // namespace latchkey::store::json
