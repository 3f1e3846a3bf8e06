// A server with persistence over the files of a directory, as a process would be started there.
#pragma once

#include <sys/wait.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "commands/groups.h"
#include "persist/persistence.h"
#include "persist/rows.h"
#include "unit/server_fixture.h"
#include "unit/temporary_directory.h"

namespace latchkey::tests {

struct Life {
  // The log is the file `log` in the directory; or in `logs`, and then the server, of which there
  // are thousands, has only the commands that tests of faults need.
  explicit Life(const TemporaryDirectory& directory, const std::string& settings = {},
                base::FileSystem& files = base::disk(), const TemporaryDirectory* logs = nullptr)
      : server({persist::aof_rows(), persist::snapshot_rows()},
               directory.setting() + "save \"\"\nappendonly yes\n" + settings, files),
        client(server) {
    server.log.set_level(base::LogLevel::kNotice);
    server.log.set_file((logs != nullptr ? *logs : directory).path() / "log");
    if (logs == nullptr) {
      commands::add_all(server.server.commands());
      server.server.commands().add(persist::dump_rows());
    } else {
      for (const auto& rows :
           {commands::config_rows(), commands::database_rows(), commands::info_rows(),
            commands::list_rows(), commands::server_rows(), commands::string_rows()})
        server.server.commands().add(rows);
    }
    persistence =
        std::make_shared<persist::Persistence>(server.server, persist::ChildProcessParts{});
    server.server.add_layer(persistence);
    result = persistence->loading().load_at_start();
    opened = result != persist::Loading::Result::kFailed && persistence->aof().open_at_start();
  }
  // Waits in the kernel for the child that writes, and has the server notice its end.
  void finish_child() {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(persistence->child().pid()), &info, WEXITED | WNOWAIT);
    server.tick();
  }
  // Lets a second pass, with what the server does at its ticks, and the syncs it begins.
  void pass_second() {
    server.advance_ms(1000);
    server.tick();
    while (persistence->aof().file().pending_syncs() != 0) std::this_thread::yield();
    server.tick();
  }
  bool info_has(std::string_view line) {
    return client.run("INFO persistence").find("\r\n" + std::string(line) + "\r\n") !=
           std::string::npos;
  }
  ServerFixture server;
  TestClient client;
  std::shared_ptr<persist::Persistence> persistence;
  persist::Loading::Result result;
  bool opened;
};

}  // namespace latchkey::tests
