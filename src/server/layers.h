// The layers above a server (scripts, persistence, replication, ...), found by their types.
//
// A server owns its layers without knowing their types. Commands find their layer here by its type.
// When the server has to call a layer, it declares an interface that the layer implements
// (SlotGate, FaultInjector, LockClaims, ...).
//
// They are destroyed in the reverse order of their adding, so that a layer may use those that were
// added before it. Looking one up compares a pointer for each that was added before it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace latchkey::server {

class Layers {
 public:
  Layers() = default;
  ~Layers() {
    while (!layers_.empty()) layers_.pop_back();
  }
  Layers(const Layers&) = delete;
  Layers& operator=(const Layers&) = delete;

  // REQUIRES: there is none of that type.
  template <typename Layer>
  void add(std::shared_ptr<Layer> layer) {
    LK_ASSERT(find<Layer>() == nullptr);
    layers_.push_back({&kType<Layer>, std::move(layer)});
  }

  // Destroys it, unless it has another owner as well. Does nothing when there is none.
  template <typename Layer>
  void remove() {
    std::erase_if(layers_, [](const Added& added) { return added.type == &kType<Layer>; });
  }

  // Null when there is none.
  template <typename Layer>
  Layer* find() const {
    for (const Added& added : layers_) {
      if (added.type == &kType<Layer>) return static_cast<Layer*>(added.layer.get());
    }
    return nullptr;
  }

 private:
  // Its address stands for the type.
  template <typename Layer>
  static inline char kType = 0;

  struct Added {
    const void* type;
    std::shared_ptr<void> layer;
  };
  std::vector<Added> layers_;
};

}  // namespace latchkey::server
