#include "cluster/slot_jobs/receiver.h"

#include <utility>

#include "base/text/text.h"
#include "base/time_units.h"
#include "cluster/slot_jobs/job.h"
#include "resp/request_encoder.h"
#include "server/client/client.h"
#include "server/server.h"

namespace latchkey::cluster {

using base::equal_ignoring_case;

JobReceiver::JobReceiver(server::Server& server, Host& host, SlotJob& job, server::Client& from,
                         server::Client& runner)
    : server_(server),
      host_(host),
      job_(job),
      client_(from),
      runner_(server, runner, job.slots),
      reader_(server) {
  if (server.loop() == nullptr) return;
  timer_ = std::make_unique<net::Timer>(*server.loop(), [this] {
    server_.refresh_clock();
    if (!over_) client_.connection()->resume_input();
  });
}

void JobReceiver::continue_soon(uint64_t delay_ms) {
  if (timer_ != nullptr) timer_->start(delay_ms);
}

void JobReceiver::enter(JobState state) {
  job_.enter(state, server_.machine_ms(), server_.log());
}

void JobReceiver::begin() {
  if (over_ || std::exchange(begun_, true) || client_.connection() == nullptr) return;
  client_.connection()->use_io_thread(false);
  client_.connection()->set_handler(*this);
  client_.connection()->resume_input();
}

size_t JobReceiver::kept_bytes() const {
  return over_ || client_.connection() == nullptr ? 0 : client_.connection()->input_size();
}

void JobReceiver::closing() {
  if (over_) return;
  over_ = true;
  if (timer_ != nullptr) timer_->stop();
  host_.receiving_failed(job_,
                         "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source "
                         "node for more information.");
}

void JobReceiver::stop() {
  if (std::exchange(over_, true)) return;
  if (timer_ != nullptr) timer_->stop();
  // What was said last goes out where the socket takes it.
  if (net::Connection* const connection = client_.connection(); connection != nullptr) {
    connection->set_handler(client_);
    connection->flush();
  }
  client_.close();
}

void JobReceiver::lost() {
  server_.refresh_clock();
  if (!over_) client_.close();
}

void JobReceiver::fail(const std::string& message) {
  if (over_) return;
  stop();
  host_.receiving_failed(job_, message);
}

void JobReceiver::send_syncslots(std::string_view what) {
  acknowledged_ms_ = server_.machine_ms();
  if (client_.connection() == nullptr) return;
  client_.out().append(resp::encode_request({"CLUSTER", "SYNCSLOTS", what}));
  client_.connection()->flush();
}

size_t JobReceiver::on_input(std::span<char> bytes) {
  server_.refresh_clock();
  if (over_) return bytes.size();
  job_.last_contact_ms = server_.machine_ms();
  // Unlike an Importer it does not wait while writes are paused: nothing else would end the job,
  // and the source may have paused writes for it. The first write fails the job
  // (StreamRunner::run).
  if (reader_.must_wait()) {
    continue_soon(StreamReader::kRetryMs);
    return 0;
  }
  const StreamReader::Progress progress = reader_.read(
      bytes, StreamReader::kPiece, [this](std::span<const std::string_view> words, size_t size) {
        received_ += size;
        if (!words.empty()) run(words);
        return !over_;
      });
  if (!progress.error.empty())
    fail("The source sends what is no request: " + std::string(progress.error));
  if (over_) return bytes.size();
  if (net::Connection* const connection = client_.connection(); connection != nullptr)
    progress.is_far_ahead ? connection->pause_reading() : connection->resume_reading();
  if (progress.has_more) continue_soon(0);
  return progress.used;
}

void JobReceiver::run(std::span<const std::string_view> words) {
  if (run_protocol(words) || over_) return;
  if (job_.state == JobState::kWaitingForAck) return fail("The source sends keys too early");
  if (const base::Result<> ran = runner_.run(words); !ran) fail(ran.error());
}

void JobReceiver::advance(JobState from, JobState to, std::string_view request,
                          std::string_view what) {
  if (job_.state != from) return fail("The source sends " + std::string(request) + " too early");
  enter(to);
  if (!what.empty()) send_syncslots(what);
}

bool JobReceiver::run_protocol(std::span<const std::string_view> words) {
  if (words.size() < 3 || !equal_ignoring_case(words[0], "cluster") ||
      !equal_ignoring_case(words[1], "syncslots"))
    return false;
  const std::string_view what = words[2];
  if (equal_ignoring_case(what, "ack")) {
    if (job_.state == JobState::kWaitingForAck) enter(JobState::kReceivingSnapshot);
  } else if (equal_ignoring_case(what, "snapshot-eof")) {
    advance(JobState::kReceivingSnapshot, JobState::kWaitingForPaused, what, "REQUEST-PAUSE");
    // Valkey takes the first database for selected, whatever the snapshot has ended with. Its own
    // nodes go on with the last one, and lose writes to others by that.
    runner_.begin_stream();
  } else if (equal_ignoring_case(what, "paused")) {
    advance(JobState::kWaitingForPaused, JobState::kFailoverRequested, what, "REQUEST-FAILOVER");
  } else if (equal_ignoring_case(what, "failover-granted")) {
    advance(JobState::kFailoverRequested, JobState::kFailoverGranted, what, {});
    if (!over_ && host_.may_take_slots()) host_.slots_granted(job_);
  } else {
    fail("The source sends an unexpected CLUSTER SYNCSLOTS " + std::string(what.substr(0, 64)));
  }
  return true;
}

void JobReceiver::tick() {
  if (over_ || !begun_) return;
  if (job_.state == JobState::kFailoverGranted && host_.may_take_slots())
    return host_.slots_granted(job_);
  const int64_t now_ms = server_.machine_ms();
  if (now_ms - job_.last_contact_ms > server_.settings().repl_timeout * base::kMsPerSecond)
    return fail("Timed out after too long with no interaction");
  // The source's silence has a limit of its own.
  client_.last_interaction_ms = now_ms;
  if (now_ms - acknowledged_ms_ >= kAckIntervalMs) send_syncslots("ACK");
}

}  // namespace latchkey::cluster
