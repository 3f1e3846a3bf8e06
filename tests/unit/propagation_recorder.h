// Reads the replication stream, as the append-only file would, and shows it one request a line.
//
//     PropagationRecorder stream(server);
//     client.run("SETEX name 10 value");
//     CHECK(stream.take() == "SELECT 0; SET name value PXAT 1000010000");
#pragma once

#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "server/command/propagation.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class PropagationRecorder final : public server::PropagationSink {
 public:
  explicit PropagationRecorder(ServerFixture& fixture, uint8_t reader = server::kPropagateToFile)
      : PropagationRecorder(fixture.server, reader) {}
  explicit PropagationRecorder(server::Server& server, uint8_t reader = server::kPropagateToFile)
      : propagation_(server.propagation()), encoder_(reader) {
    propagation_.add_sink(*this);
  }
  ~PropagationRecorder() override { propagation_.remove_sink(*this); }
  PropagationRecorder(const PropagationRecorder&) = delete;
  PropagationRecorder& operator=(const PropagationRecorder&) = delete;

  void on_propagated(std::span<const server::PropagatedCommand> unit) override {
    encoder_.append(unit, &bytes_);
  }

  // The bytes that were written since the last call, for another server to run.
  std::string take_bytes() { return std::exchange(bytes_, {}); }
  // What was written since the last call: words separated by spaces, requests by "; ".
  std::string take() {
    std::string text;
    for (size_t at = 0; at < bytes_.size();) {
      if (!text.empty()) text += "; ";
      const size_t words = read_size(&at);
      for (size_t i = 0; i < words; ++i) {
        const size_t size = read_size(&at);
        if (i > 0) text += ' ';
        text += std::string_view(bytes_).substr(at, size);
        at += size + 2;
      }
    }
    bytes_.clear();
    return text;
  }

 private:
  // The number of a line like "$12"; steps over the line.
  size_t read_size(size_t* at) {
    const size_t size = std::strtoul(bytes_.c_str() + *at + 1, nullptr, 10);
    *at = bytes_.find("\r\n", *at) + 2;
    return size;
  }

  server::Propagation& propagation_;
  server::PropagationEncoder encoder_;
  std::string bytes_;
};

}  // namespace latchkey::tests
