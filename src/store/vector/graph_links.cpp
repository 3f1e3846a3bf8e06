// Which nodes of a VectorGraph are linked.
#include <algorithm>

#include "base/assert.h"
#include "store/vector/graph.h"

namespace latchkey::store {

namespace {

// A link is not given up when the other end would be left with fewer.
constexpr size_t kMinKept = 4;
// How far a node looks for others when it has lost its last link.
constexpr size_t kRelinkEffort = 64;

}  // namespace

void VectorGraph::add_link(Slot slot, unsigned level, Slot to) {
  LinkList links = list(slot, level);
  LK_ASSERT(links.size() < room(level));
  *links.end() = to;
  links.set_size(links.size() + 1);
}

void VectorGraph::remove_link(Slot slot, unsigned level, Slot to) {
  LinkList links = list(slot, level);
  Slot* const found = std::find(links.begin(), links.end(), to);
  LK_ASSERT(found != links.end());
  *found = *(links.end() - 1);
  links.set_size(links.size() - 1);
}

void VectorGraph::unlink(Slot a, Slot b, unsigned level) {
  remove_link(a, level, b);
  remove_link(b, level, a);
}

bool VectorGraph::make_room(Slot slot, unsigned level, const QuantizedVector& newcomer,
                            float distance) {
  const std::span<const Slot> linked = links(slot, level);
  if (linked.size() < room(level)) return true;
  std::vector<Found> far;
  far.reserve(linked.size());
  for (const Slot to : linked) far.push_back({distance_between(slot, to), to});
  std::sort(far.begin(), far.end(),
            [](const Found& a, const Found& b) { return a.distance > b.distance; });
  // A link is superfluous when one end can be reached from the other by a shorter one. When none
  // is, the farthest is given up.
  Slot goes = kNone;
  for (size_t i = 0; i < far.size() && far[i].distance > distance; ++i) {
    if (links(far[i].slot, level).size() <= kMinKept) continue;
    if (goes == kNone) goes = far[i].slot;
    const QuantizedVector end = vector(far[i].slot);
    bool is_superfluous = distance_(newcomer, end) < far[i].distance;
    for (size_t nearer = far.size(); !is_superfluous && nearer-- > i + 1;)
      is_superfluous = distance_(vector(far[nearer].slot), end) < far[i].distance;
    if (!is_superfluous) continue;
    goes = far[i].slot;
    break;
  }
  // Of those that lie at the same place as the node, the newcomer among them, one is enough.
  if (goes == kNone && distance == 0 && far.front().distance == 0) goes = far.front().slot;
  if (goes == kNone || links(goes, level).size() < 2) return false;
  unlink(slot, goes, level);
  return true;
}

bool VectorGraph::link(Slot a, Slot b, unsigned level, float distance) {
  if (!make_room(b, level, vector(a), distance)) return false;
  add_link(a, level, b);
  add_link(b, level, a);
  return true;
}

std::vector<VectorGraph::Found> VectorGraph::choose_links(const std::vector<Found>& near,
                                                          size_t most,
                                                          std::vector<Found>* passed_over) const {
  // A node is chosen when none of those chosen before is nearer to it than the new one is: so the
  // links go in different directions.
  std::vector<Found> chosen;
  for (const Found& one : near) {
    const QuantizedVector candidate = vector(one.slot);
    const bool is_hidden =
        chosen.size() >= most || std::any_of(chosen.begin(), chosen.end(), [&](const Found& other) {
          return distance_(candidate, vector(other.slot)) < one.distance || one.distance == 0;
        });
    if (!is_hidden) {
      chosen.push_back(one);
    } else {
      passed_over->push_back(one);
      // No more of these can be of use.
      if (chosen.size() >= most || passed_over->size() >= 4 * most) break;
    }
  }
  return chosen;
}

void VectorGraph::link_new(Slot slot, unsigned level, const std::vector<Found>& near) {
  std::vector<Found> passed_over;
  const std::vector<Found> chosen = choose_links(near, links_, &passed_over);
  size_t linked = 0;
  for (const auto* candidates : {&chosen, static_cast<const std::vector<Found>*>(&passed_over)}) {
    for (const Found& one : *candidates) {
      if (linked == links_) return;
      if (link(slot, one.slot, level, one.distance)) ++linked;
    }
  }
  for (const Found& one : near) {
    if (linked > 0) return;
    const std::span<const Slot> there = links(one.slot, level);
    const auto spare = std::find_if(there.begin(), there.end(),
                                    [&](Slot to) { return links(to, level).size() > 1; });
    if (spare == there.end()) continue;
    unlink(one.slot, *spare, level);
    linked += link(slot, one.slot, level, one.distance) ? 1 : 0;
  }
}

void VectorGraph::mend(const std::vector<Slot>& former, unsigned level, Slot erased) {
  struct Pair {
    float distance;
    uint32_t a;
    uint32_t b;  // indices in `former`
  };
  std::vector<Pair> pairs;
  for (uint32_t a = 0; a < former.size(); ++a) {
    const std::span<const Slot> linked = links(former[a], level);
    for (uint32_t b = a + 1; b < former.size(); ++b) {
      if (std::find(linked.begin(), linked.end(), former[b]) == linked.end())
        pairs.push_back({distance_between(former[a], former[b]), a, b});
    }
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return a.distance < b.distance; });
  // Each gets a link for the one it has lost, and at most one more, for the sake of another.
  constexpr uint8_t kMaxGained = 2;
  std::vector<uint8_t> gained(former.size());
  for (const Pair& pair : pairs) {
    if (gained[pair.a] + gained[pair.b] >= kMaxGained) continue;
    const Slot a = former[pair.a];
    const Slot b = former[pair.b];
    if (links(a, level).size() == room(level) || links(b, level).size() == room(level)) continue;
    add_link(a, level, b);
    add_link(b, level, a);
    ++gained[pair.a];
    ++gained[pair.b];
  }
  for (const Slot slot : former) {
    if (links(slot, level).empty()) relink(slot, level, erased);
  }
}

void VectorGraph::relink(Slot slot, unsigned level, Slot erased) {
  if (top_level() < level) return;
  const QuantizedVector here = vector(slot);
  std::vector<Found> near;
  if (slot != entry_) {
    Found from{distance_(here, vector(entry_)), entry_};
    if (top_level() > level) from = descend(here, from, top_level(), level + 1);
    near = search_level(here, from, level, {.effort = kRelinkEffort});
    std::erase_if(near, [&](const Found& one) { return one.slot == slot; });
  } else {
    // No search leads away from the entry, but any other node will do: searches go on from there.
    for (size_t i = 0; i < size_ && near.empty(); ++i) {
      const auto other = static_cast<Slot>(i);
      if (other != slot && other != erased && this->level(other) >= level)
        near.push_back({distance_(here, vector(other)), other});
    }
  }
  link_new(slot, level, near);
}

}  // namespace latchkey::store
