// What the tests of string commands share: a server with those commands and one key that is no
// string.
#pragma once

#include <memory>
#include <string>

#include "commands/groups.h"
#include "store/entry.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

class StringServer : public ServerFixture {
 public:
  explicit StringServer(std::string_view settings = {})
      : ServerFixture(
            {commands::bounded_counter_rows(), commands::counter_rows(), commands::lcs_rows(),
             commands::string_batch_rows(), commands::string_condition_rows(),
             commands::string_range_rows(), commands::string_rows()},
            settings) {}

  // Makes `key` a list.
  void put_list(std::string_view key) {
    store::KeyRef ref = database().find_for_write(key);
    database().set_value(ref, store::Type::kList, std::make_unique<AnyValue>());
  }
  // What OBJECT ENCODING and PTTL would say.
  std::string encoding(std::string_view key) {
    return std::string(database().find(key, store::Keyspace::kPeek)->encoding_name());
  }
  // Milliseconds left; -1 without a deadline, -2 without a key.
  int64_t ttl_ms(std::string_view key) {
    const store::KeyRef ref = database().find(key, store::Keyspace::kPeek);
    if (!ref) return -2;
    return ref->has_deadline() ? ref->deadline_ms() - now_ms() : -1;
  }

 private:
  class AnyValue final : public store::Value {
   public:
    std::string_view encoding_name() const override { return "listpack"; }
    size_t free_effort() const override { return 1; }
    size_t element_count() const override { return 1; }
    size_t memory_usage() const override { return 0; }
    Value* clone() const override { return new AnyValue; }
  };
};

}  // namespace latchkey::tests
