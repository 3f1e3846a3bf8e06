// Messages of a cluster's bus that nobody has sent. What can be read must say the same when it has
// been written and read again, and the table of nodes must bear what a file says.
#include <string>

#include "cluster/bus_message.h"
#include "cluster/nodes_text.h"
#include "input.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

void read_message(std::string bytes) {
  // A length that fits, so that the rest is looked at.
  if (bytes.size() < cluster::kHeaderBytes) bytes.resize(cluster::kHeaderBytes);
  bytes.replace(0, 4, "RCmb");
  for (size_t i = 0; i < 4; ++i)
    bytes[4 + i] = static_cast<char>(bytes.size() >> (8 * (3 - i)) & 0xff);
  bytes[8] = 0;
  bytes[9] = 1;
  require(cluster::announced_length(bytes) == bytes.size());
  const auto message = cluster::decode(bytes);
  if (!message) return;
  const std::string written = cluster::encode(*message);
  const auto again = cluster::decode(written);
  require(again.has_value());
  require(cluster::encode(*again) == written);
}

void read_file(std::string_view text) {
  cluster::NodeTable nodes;
  if (!cluster::parse_file(text, 1, &nodes)) return;
  const std::string written = cluster::file_text(nodes);
  cluster::NodeTable again;
  require(bool(cluster::parse_file(written, 1, &again)));
  require(cluster::file_text(again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 16'384;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  if ((input.byte() & 1) != 0) {
    read_message(std::string(input.rest()));
  } else {
    read_file(input.rest());
  }
  return 0;
}
