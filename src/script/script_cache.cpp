#include "script/script_cache.h"

#include <utility>

#include "base/text/text.h"

namespace latchkey::script {

Script* ScriptCache::find_body(std::string_view body) const {
  const auto found = by_body_.find(body);
  return found == by_body_.end() ? nullptr : found->second.get();
}

Script* ScriptCache::find_sha(std::string_view sha) const {
  if (sha.size() != kShaTextSize) return nullptr;
  std::array<char, kShaTextSize> lower;
  for (size_t i = 0; i < kShaTextSize; ++i) lower[i] = base::lower_case(sha[i]);
  const auto found = by_sha_.find(std::string_view(lower.data(), lower.size()));
  return found == by_sha_.end() ? nullptr : found->second;
}

Script& ScriptCache::add(std::shared_ptr<Script> script) {
  Script& added = *script;
  script_bytes_ += added.memory_usage();
  if (added.evictable) added.place = queue_.insert(queue_.end(), &added);
  by_sha_.emplace(added.sha, &added);
  by_body_.emplace(added.body, std::move(script));
  return added;
}

void ScriptCache::used(Script& script) {
  if (script.evictable) queue_.splice(queue_.end(), queue_, script.place);
}

void ScriptCache::keep(Script& script) {
  if (!script.evictable) return;
  queue_.erase(script.place);
  script.evictable = false;
}

void ScriptCache::remove(Script& script) {
  if (script.evictable) queue_.erase(script.place);
  script_bytes_ -= script.memory_usage();
  by_sha_.erase(script.sha);
  by_body_.erase(by_body_.find(script.body));
}

std::vector<std::shared_ptr<Script>> ScriptCache::scripts() const {
  std::vector<std::shared_ptr<Script>> all;
  all.reserve(by_body_.size());
  for (const auto& [unused, script] : by_body_) all.push_back(script);
  return all;
}

void ScriptCache::clear() {
  queue_.clear();
  by_sha_.clear();
  by_body_.clear();
  script_bytes_ = 0;
}

void ScriptCache::forget_functions() {
  for (auto& [unused, script] : by_body_) script->function = 0;
}

size_t ScriptCache::memory_usage() const {
  // A map's node holds its pair, a link and the hash; a list's node its pointer and two links.
  constexpr size_t kBodyNode = sizeof(*by_body_.begin()) + 2 * sizeof(void*);
  constexpr size_t kShaNode = sizeof(*by_sha_.begin()) + 2 * sizeof(void*);
  constexpr size_t kQueueNode = 3 * sizeof(void*);
  return script_bytes_ + by_body_.size() * (kBodyNode + kShaNode) + queue_.size() * kQueueNode +
         (by_body_.bucket_count() + by_sha_.bucket_count()) * sizeof(void*);
}

}  // namespace latchkey::script
