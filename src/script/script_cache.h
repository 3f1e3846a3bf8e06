// The scripts that the server knows, by body and by SHA-1.
//
// EVAL finds its script by the body: one XXH3 of it and one comparison, no SHA-1. The digest is
// computed once, when a script is added. Scripts that came by EVAL only are kept in order of use,
// and the least recently used one is evicted when there are more than kMaxEvalScripts of them;
// those of SCRIPT LOAD stay until SCRIPT FLUSH.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/digest/hash.h"

namespace latchkey::script {

inline constexpr size_t kShaTextSize = 40;

struct Script {
  std::string body;
  // 40 lower-case hexadecimal digits.
  std::string sha;
  // ScriptFlag bits.
  uint32_t flags = 0;
  // The compiled function, in the interpreter's registry; 0: not compiled.
  int function = 0;
  // Came by EVAL only: may be evicted.
  bool evictable = false;
  std::list<Script*>::iterator place = {};

  size_t memory_usage() const { return sizeof(Script) + body.capacity() + sha.capacity(); }
};

class ScriptCache {
 public:
  static constexpr size_t kMaxEvalScripts = 500;

  explicit ScriptCache(const base::HashSecret& secret)
      : by_body_(0, base::KeyedTextHash{&secret}) {}
  ScriptCache(const ScriptCache&) = delete;
  ScriptCache& operator=(const ScriptCache&) = delete;

  // Null when unknown.
  Script* find_body(std::string_view body) const;
  // `sha` in any case.
  Script* find_sha(std::string_view sha) const;

  // Adds a script. REQUIRES: none with its body is in the cache.
  Script& add(std::shared_ptr<Script> script);
  // Called when a script is run: moves it to the end of the eviction queue.
  void used(Script& script);
  // Called for SCRIPT LOAD: the script is never evicted.
  void keep(Script& script);
  // The script to evict before EVAL adds another, or null while there is room.
  Script* to_evict() const { return queue_.size() < kMaxEvalScripts ? nullptr : queue_.front(); }
  void remove(Script& script);
  void clear();
  // All scripts, in no order.
  std::vector<std::shared_ptr<Script>> scripts() const;
  // Called when their interpreter is destroyed: marks all scripts as not compiled.
  void forget_functions();

  size_t size() const { return by_body_.size(); }
  // Bytes of the scripts and their index, without the compiled code.
  size_t memory_usage() const;

 private:
  // Keys are views of the scripts' own text.
  std::unordered_map<std::string_view, std::shared_ptr<Script>, base::KeyedTextHash> by_body_;
  std::unordered_map<std::string_view, Script*> by_sha_;
  std::list<Script*> queue_;
  size_t script_bytes_ = 0;
};

}  // namespace latchkey::script
