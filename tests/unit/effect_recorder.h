// Reads the stream of effects, as the append-only file would, and shows it one request a line.
//
//     EffectRecorder stream(server);
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

class EffectRecorder final : public server::EffectReader {
 public:
  explicit EffectRecorder(ServerFixture& fixture, uint8_t reader = server::kEffectForFile)
      : propagation_(fixture.server.propagation()), encoder_(reader) {
    propagation_.add_reader(*this);
  }
  ~EffectRecorder() override { propagation_.remove_reader(*this); }
  EffectRecorder(const EffectRecorder&) = delete;
  EffectRecorder& operator=(const EffectRecorder&) = delete;

  void effects_happened(std::span<const server::Effect> unit) override {
    encoder_.append(unit, &bytes_);
  }

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
  server::EffectEncoder encoder_;
  std::string bytes_;
};

}  // namespace latchkey::tests
