#include "store/json/json_document.h"

#include <algorithm>
#include <vector>

#include "store/json/json_writer.h"

namespace latchkey::store {

namespace {

using json::Member;
using json::Node;

// As text, with the members of objects in the order of their keys.
void write_canonical(const Node& node, std::string* out) {
  if (!node.is_container()) {
    json::write(node, {}, out);
    return;
  }
  if (node.is_array()) {
    out->push_back('[');
    for (const Node& element : node.elements()) {
      write_canonical(element, out);
      out->push_back(',');
    }
    out->push_back(']');
    return;
  }
  std::vector<const Member*> members;
  for (const Member& member : node.members()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const Member* member) { return member->key.text(); });
  out->push_back('{');
  for (const Member* member : members) {
    json::write_string(member->key.text(), out);
    out->push_back(':');
    write_canonical(member->value, out);
    out->push_back(',');
  }
  out->push_back('}');
}

}  // namespace

void JsonDocument::for_each_digest_part(const DigestPart& part) const {
  std::string text;
  write_canonical(root_, &text);
  part(text);
}

size_t JsonDocument::free_effort() const {
  constexpr size_t kMost = 4096;
  return root_.allocation_count(kMost);
}

}  // namespace latchkey::store
