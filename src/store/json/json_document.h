// The value of a key with a JSON document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/json/json_node.h"
#include "store/keyspace.h"
#include "store/value/module_value.h"

namespace latchkey::store {

class JsonDocument final : public ModuleValue {
 public:
  static constexpr Type kType = Type::kJson;

  explicit JsonDocument(json::Node root) : root_(std::move(root)) {}

  // REQUIRES of those who change it: it stays within Node::kMaxDepth levels.
  json::Node& root() { return root_; }
  const json::Node& root() const { return root_; }

  // Of the hash of keys, for all documents of a server.
  static uint64_t key_seed(const Environment& environment) {
    return environment.secret.hash("JSON");
  }

  // Value
  void for_each_digest_part(const DigestPart& part) const override;
  size_t free_effort() const override;
  size_t element_count() const override { return 1; }
  size_t memory_usage() const override { return sizeof *this + root_.memory_usage(); }
  Value* clone() const override { return new JsonDocument(root_.clone()); }

 private:
  json::Node root_;
};

}  // namespace latchkey::store
