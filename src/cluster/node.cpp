#include "cluster/node.h"

#include <algorithm>

namespace latchkey::cluster {

size_t Node::working_replicas() const {
  return static_cast<size_t>(
      std::count_if(replicas.begin(), replicas.end(),
                    [](const Node* replica) { return !replica->has(kFailing); }));
}

bool is_id(std::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == text.npos;
}

bool is_safe_in_nodes_file(std::string_view text) {
  constexpr size_t kLongest = 255;
  constexpr unsigned char kDelete = 0x7f;
  return text.size() <= kLongest && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return c > ' ' && c != kDelete && c != ',' && c != '=' && c != '"';
         });
}

std::string title(const Node& node) {
  if (!node.human_name.empty()) return node.id + " (" + node.human_name + ")";
  const NodeAddress& address = node.address;
  const std::string ip =
      address.ip.find(':') == std::string::npos ? address.ip : "[" + address.ip + "]";
  const int port = address.port != 0 ? address.port : address.tls_port;
  return node.id + " (" + ip + ":" + std::to_string(port) + ")";
}

}  // namespace latchkey::cluster
