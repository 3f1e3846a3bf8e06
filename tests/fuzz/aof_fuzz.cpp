// Append-only files and manifests of any bytes: nothing but whole requests is run, a manifest that
// is taken in is written back as itself, and what loads up to some place loads again when it is cut
// there.
#include <algorithm>
#include <string>

#include "commands/groups.h"
#include "input.h"
#include "persist/aof/aof_loader.h"
#include "persist/aof/aof_manifest.h"
#include "script/engine.h"
#include "script/rows.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;
using persist::AofLoader;

void check_manifest(std::string_view text) {
  persist::AofManifest manifest("appendonly.aof");
  if (const auto parsed = manifest.parse(text); !parsed) {
    require(!parsed.error().log_lines().empty());
    return;
  }
  const std::string written = manifest.format();
  // Comments alone make a manifest without files, which is not written.
  if (written.empty()) return;
  const size_t longest = [&] {
    size_t most = 0;
    for (size_t at = 0; at < written.size();) {
      const size_t end = written.find('\n', at) + 1;
      most = std::max(most, end - at);
      at = end;
    }
    return most;
  }();
  if (longest > persist::AofManifest::kMaxLine) return;
  persist::AofManifest again("appendonly.aof");
  require(bool(again.parse(written)));
  require(again.format() == written);
}

class World {
 public:
  World() : server_({}, "proto-max-bulk-len 1mb\n"), loader_(server_.server) {
    commands::add_all(server_.server.commands());
    client_ = std::make_unique<tests::TestClient>(server_, 2);
  }

  void run(std::string_view bytes) {
    uint64_t valid = 0;
    load(bytes, &valid);
    require(valid <= bytes.size());
    uint64_t again = 0;
    require(load(bytes.substr(0, valid), &again) == AofLoader::Result::kDone);
    require(again == valid);
  }

 private:
  AofLoader::Result load(std::string_view bytes, uint64_t* valid) {
    client_->run("FLUSHALL");
    server_.server.environment().expired = store::Environment::Expired::kShow;
    const auto result = loader_.load_bytes(bytes, valid);
    server_.server.environment().expired = store::Environment::Expired::kRemove;
    return result;
  }

  tests::ServerFixture server_;
  AofLoader loader_;
  std::unique_ptr<tests::TestClient> client_;
};

// Commands that end or stop the process, or reach out of it, have no place in a file of effects.
bool names_any(std::string_view bytes, std::initializer_list<std::string_view> words) {
  std::string lower(bytes);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 4'096;
  if (size == 0 || size > kLongestInput) return 0;
  Input input(data, size);
  const bool as_manifest = (input.byte() & 1) != 0;
  if (as_manifest) {
    check_manifest(input.rest());
    return 0;
  }
  if (names_any(input.rest(), {"debug", "shutdown", "config"})) return 0;
  static World world;
  world.run(input.rest());
  return 0;
}
