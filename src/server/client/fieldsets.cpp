#include "server/client/fieldsets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "store/keyspace.h"

namespace latchkey::server {

bool Fieldsets::prepare(store::Environment& environment, std::string_view name, Arguments fields) {
  std::vector<uint32_t> places(fields.size());
  std::iota(places.begin(), places.end(), uint32_t{0});
  std::sort(places.begin(), places.end(), [&](uint32_t one, uint32_t other) {
    return store::FieldNames::precedes(fields[one], fields[other]);
  });
  std::vector<std::string_view> ordered;
  ordered.reserve(fields.size());
  for (const uint32_t place : places) ordered.push_back(fields[place]);
  if (std::adjacent_find(ordered.begin(), ordered.end()) != ordered.end()) return false;
  discard(name);
  const auto [added, is_new] = by_name_.emplace(
      name, Fieldset{environment.field_names.get(environment, ordered), std::move(places)});
  bytes_ += memory_of(*added);
  return true;
}

const Fieldset* Fieldsets::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found != by_name_.end() ? &found->second : nullptr;
}

bool Fieldsets::discard(std::string_view name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return false;
  bytes_ -= memory_of(*found);
  by_name_.erase(found);
  return true;
}

size_t Fieldsets::memory_of(const ByName::value_type& item) {
  // The links and colour of a node of std::map.
  constexpr size_t kNode = 4 * sizeof(void*);
  const auto& [name, fieldset] = item;
  return kNode + sizeof(item) + name.capacity() + fieldset.places.capacity() * sizeof(uint32_t) +
         fieldset.names->memory_usage();
}

}  // namespace latchkey::server
