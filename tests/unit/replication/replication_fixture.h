// A server that has replicas, or follows a master; the test plays them, and the child that writes
// snapshots.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "replication/replication.h"
#include "server/observe/info.h"
#include "unit/replication/fake_snapshots.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

struct ReplicationFixture : ServerFixture {
  ReplicationFixture(std::initializer_list<std::span<const server::CommandRow>> rows,
                     std::string_view settings, base::FileSystem& files = base::disk())
      : ServerFixture(rows, settings, files) {
    auto maker = std::make_unique<FakeSnapshots>();
    snapshots = maker.get();
    replication = std::make_shared<replication::Replication>(server, std::move(maker));
    server.add_layer(replication);
  }

  std::string info(std::string_view field) {
    const std::string_view section = "replication";
    const std::string text = server.info().text(std::span(&section, 1), server.edition());
    const size_t at = text.find("\n" + std::string(field) + ":");
    if (at == std::string::npos) return {};
    const size_t start = at + field.size() + 2;
    return text.substr(start, text.find('\r', start) - start);
  }
  void advance_seconds(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      advance_ms(1000);
      tick();
    }
  }

  FakeSnapshots* snapshots = nullptr;
  std::shared_ptr<replication::Replication> replication;
};

}  // namespace latchkey::tests
