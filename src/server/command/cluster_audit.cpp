#include "server/command/cluster_audit.h"

#include "server/server.h"

namespace latchkey::server {

void ClusterAudit::begin(std::span<const SlotGate::Request> requests) {
  constexpr uint64_t kWhole = 100;
  const auto ratio = static_cast<uint64_t>(server_.settings().cluster_compatibility_sample_ratio);
  sampling_ = server_.environment().random.below(kWhole) < ratio;
  if (sampling_ && common_slot(requests) == kSeveralSlots) count_incompatible();
}

void ClusterAudit::count_incompatible() {
  if (!sampling_) return;
  sampling_ = false;
  ++count_;
}

}  // namespace latchkey::server
