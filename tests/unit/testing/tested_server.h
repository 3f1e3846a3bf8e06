// A server with all commands, scripts among them, and with what CALLS and FAULT need.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "all_commands.h"
#include "script/engine.h"
#include "testing/calls.h"
#include "testing/faults.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

struct TestedServer : ServerFixture {
  explicit TestedServer(std::string_view settings = {}) : ServerFixture({}, settings) {
    add_all_commands(server);
    server.add_layer(std::make_shared<script::Engine>(server));
    const auto calls = std::make_shared<testing::Calls>(server);
    server.add_layer(calls);
    server.set_call_listener(calls.get());
    const auto faults = std::make_shared<testing::Faults>(server);
    server.add_layer(faults);
    server.set_fault_injector(faults.get());
  }

  const testing::Calls::Record& call(size_t place) {
    return server.layer<testing::Calls>().records().at(place);
  }
  // The calls on record and what became of them: "SET a 1 -> OK, GET a -> "1"".
  std::string calls() {
    std::string text;
    for (const auto& record : server.layer<testing::Calls>().records()) {
      if (!text.empty()) text += ", ";
      for (const std::string& word : record.words) text += word + ' ';
      text += "-> " + record.reply;
    }
    return text;
  }
  uint64_t hits(size_t place = 0) {
    return server.layer<testing::Faults>().faults().at(place).hits;
  }
};

}  // namespace latchkey::tests
