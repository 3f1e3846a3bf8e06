// A value of a type that Redis 8 has as a module built in: JSON, time series, Bloom and cuckoo
// filters, count-min sketches, top-k lists, t-digests. Such a value is never packed into its entry.
#pragma once

#include <functional>
#include <string_view>

#include "store/entry.h"

namespace latchkey::store {

class ModuleValue : public Value {
 public:
  // Calls `part` with bytes that are the same for two values exactly when the values are equal.
  // DEBUG DIGEST is made of them.
  using DigestPart = std::function<void(std::string_view)>;
  virtual void for_each_digest_part(const DigestPart& part) const = 0;

  std::string_view encoding_name() const override { return "raw"; }
};

}  // namespace latchkey::store
