// Whole RDB files that nobody has written, behind a valid signature. A dataset that can be read
// must be the same when it has been written and read again.
#include <string>

#include "commands/groups.h"
#include "input.h"
#include "persist/check_rdb.h"
#include "persist/rdb/rdb_file.h"
#include "server/observe/dataset_digest.h"
#include "unit/server_fixture.h"

namespace {

using namespace latchkey;
using fuzz::Input;
using fuzz::require;

class World {
 public:
  World() : server_({}), other_({}) {}

  void run(Input input) {
    const uint8_t choice = input.byte();
    std::string file = (choice & 1) != 0 ? "REDIS0012" : "REDIS0003";
    file += input.rest();
    persist::MemorySource source(file);
    persist::ReadOptions options;
    options.verify_checksum = false;
    options.drop_expired = (choice & 2) != 0;
    options.replace_existing = (choice & 4) != 0;
    if (!read(server_, source, options)) return;

    std::string written;
    persist::StringSink sink(written);
    persist::WriteOptions how = persist::write_options(server_.server);
    how.compress = (choice & 8) != 0;
    require(persist::write_dataset(sink, server_.server, how));
    persist::MemorySource again(written);
    options.verify_checksum = true;
    options.drop_expired = false;
    require(read(other_, again, options));
    require(again.offset() == written.size());
    require(server::dataset_digest(server_.server) == server::dataset_digest(other_.server));
  }

 private:
  static bool read(tests::ServerFixture& server, persist::ByteSource& source,
                   const persist::ReadOptions& options) {
    for (int i = 0; i < server.server.database_count(); ++i) server.database(i).clear(false);
    auto& expired = server.server.environment().expired;
    expired = store::Environment::Expired::kShow;
    const persist::ReadReport report = persist::read_dataset(source, server.server, options);
    require(report.ok == report.errors.empty());
    return report.ok;
  }

  tests::ServerFixture server_;
  tests::ServerFixture other_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLongestInput = 16'384;
  if (size > kLongestInput) return 0;
  static World world;
  world.run(Input(data, size));
  return 0;
}
