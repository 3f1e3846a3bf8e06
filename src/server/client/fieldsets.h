// The lists of field names that a client has prepared, by name, for HIMPORT SET. They belong to the
// connection: nobody else sees them, and they end with it or with RESET.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/command/arguments.h"
#include "store/value/field_names.h"

namespace latchkey::server {

struct Fieldset {
  store::FieldNamesRef names;
  // For each of `names`, the place that its value has in a request.
  std::vector<uint32_t> places;
};

class Fieldsets {
 public:
  // Prepares these fields under `name`, instead of what was there. False, and nothing changes, when
  // two of them are the same. O(n log n). REQUIRES: at least one field.
  bool prepare(store::Environment& environment, std::string_view name, Arguments fields);
  // Null when there is none.
  const Fieldset* find(std::string_view name) const;
  bool discard(std::string_view name);
  size_t size() const { return by_name_.size(); }
  // Bytes that the client is charged for; names that others share are charged to each.
  size_t memory_usage() const { return bytes_; }

 private:
  using ByName = std::map<std::string, Fieldset, std::less<>>;
  static size_t memory_of(const ByName::value_type& item);

  ByName by_name_;
  size_t bytes_ = 0;
};

}  // namespace latchkey::server
