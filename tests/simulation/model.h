// What one client's own keys should hold: a simple dataset, and what requests do to it and are
// replied.
//
// A client's keys are named by its prefix and nobody else writes them, so that what is replied to
// it is known to the byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulation/protocol.h"

namespace latchkey::simulation {

struct Value {
  enum class Type : uint8_t { kString, kList, kHash, kSortedSet };
  Type type = Type::kString;
  std::string text;
  std::vector<std::string> list;
  std::map<std::string, std::string> fields;  // or members and their scores
  int64_t deadline_ms = 0;                    // Unix time, or 0

  bool operator==(const Value&) const = default;
};

// By key.
class Model {
 public:
  Model() = default;
  explicit Model(std::map<std::string, Value> values) : values_(std::move(values)) {}

  // Runs a request at that time (Unix time), and returns the reply. Throws std::logic_error for
  // requests that it does not know.
  std::string run(const Words& words, int64_t now_ms);
  // Takes away what has expired by then.
  void expire(int64_t now_ms);
  void clear() { values_.clear(); }

  const std::map<std::string, Value>& values() const { return values_; }
  // A line that tells what there is.
  std::string text() const;
  bool operator==(const Model&) const = default;

 private:
  std::string on_string(const Words& words, Value* found);
  std::string on_list(const Words& words, Value* found);
  std::string on_fields(const Words& words, Value* found);
  std::string on_key(const Words& words, Value* found, int64_t now_ms);
  Value& make(const std::string& key, Value::Type type);

  std::map<std::string, Value> values_;
};

}  // namespace latchkey::simulation
