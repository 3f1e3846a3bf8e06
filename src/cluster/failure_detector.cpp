#include "cluster/failure_detector.h"

#include "cluster/cluster.h"
#include "server/server.h"

namespace latchkey::cluster {

namespace {

// In node timeouts: the validity of reports, and how long a master that is back stays failing.
constexpr int64_t kReportTimeouts = 2;

}  // namespace

void FailureDetector::suspect(Node& node) {
  node.set(kSuspect);
  cluster_.server().log().debug("*** NODE " + title(node) + " possibly failing");
  cluster_.changed();
}

size_t FailureDetector::count_reports(Node& node) {
  return NodeTable::count_reports(node, cluster_.server().machine_ms(),
                                  cluster_.timeout_ms() * kReportTimeouts);
}

void FailureDetector::mark_failing(Node& node) {
  node.set(kSuspect, false);
  node.set(kFailing);
  node.failing_since_ms = cluster_.server().machine_ms();
  cluster_.changed();
}

void FailureDetector::mark_failing_at_quorum(Node& node) {
  if (!node.has(kSuspect) || node.has(kFailing)) return;
  const Node& myself = cluster_.myself();
  const size_t agreeing = count_reports(node) + (myself.votes() ? 1 : 0);
  if (agreeing < cluster_.nodes().quorum()) return;
  cluster_.server().log().notice("Marking node " + title(node) + " as failing (quorum reached).");
  mark_failing(node);
  // A replica that may ask for votes at once tells first why.
  const bool stands_at_once =
      myself.master == &node && cluster_.server().edition().is_valkey_since({9, 1});
  if (!myself.is_master() && !stands_at_once) return;
  Message message = cluster_.message(MessageType::kFail);
  message.subject = node.id;
  cluster_.bus().send_to(cluster_.nodes().all(), message);
}

void FailureDetector::receive_fail(const Node& by, const Message& message) {
  Node* const node = cluster_.nodes().find(message.subject);
  if (node == nullptr || node->has(kFailing | kMyself | kHandshake)) return;
  cluster_.server().log().notice("FAIL message received from " + title(by) + " about " +
                                 title(*node));
  mark_failing(*node);
}

void FailureDetector::clear_failing(Node& node) {
  base::Logger& log = cluster_.server().log();
  const int64_t failed_for_ms = cluster_.server().machine_ms() - node.failing_since_ms;
  if (node.votes()) {
    if (failed_for_ms <= cluster_.timeout_ms() * kReportTimeouts) return;
    log.notice("Clear FAIL state for node " + title(node) +
               ": is reachable again and nobody is serving its slots after some time.");
  } else {
    log.notice("Clear FAIL state for node " + title(node) + ":" +
               (node.is_replica() ? "replica" : "master without slots") + " is reachable again.");
  }
  node.set(kFailing, false);
  cluster_.changed();
}

}  // namespace latchkey::cluster
