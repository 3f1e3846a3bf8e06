#include "server/process/certificate_reload.h"

#include <utility>

#include "base/time_units.h"
#include "server/server.h"

namespace latchkey::server {

CertificateReload::CertificateReload(Server& server, Install install)
    : server_(server), install_(std::move(install)) {}

void CertificateReload::watch(tls::Settings settings, std::vector<tls::FileStamp> stamps) {
  ++round_;
  settings_ = std::move(settings);
  stamps_ = std::move(stamps);
  schedule();
}

void CertificateReload::stop() {
  ++round_;
  settings_.reset();
  stamps_.clear();
  schedule();
}

void CertificateReload::set_interval(int seconds) {
  interval_s_ = seconds;
  schedule();
}

void CertificateReload::schedule() {
  if (interval_s_ == 0 || !settings_.has_value()) {
    timer_.reset();
    return;
  }
  if (!timer_.has_value()) timer_.emplace(*server_.loop(), [this] { start_check(); });
  const uint64_t interval_ms = static_cast<uint64_t>(interval_s_ * base::kMsPerSecond);
  timer_->start(interval_ms, interval_ms);
}

void CertificateReload::start_check() {
  if (checking_) return;
  checking_ = true;
  if (!waker_.has_value()) waker_.emplace(*server_.loop(), [this] { finish_check(); });
  if (!worker_.has_value()) worker_.emplace("tls-reload");
  worker_->run([this, round = round_, settings = *settings_, before = stamps_] {
    Check check;
    check.round = round;
    check.stamps = tls::stamps_of(settings);
    check.changed = check.stamps != before;
    if (check.changed) check.context = tls::Context::make(settings);
    {
      const std::lock_guard lock(mutex_);
      done_ = std::move(check);
    }
    waker_->wake();
  });
}

void CertificateReload::finish_check() {
  std::optional<Check> check;
  {
    const std::lock_guard lock(mutex_);
    check = std::exchange(done_, std::nullopt);
  }
  if (!check.has_value()) return;
  checking_ = false;
  if (check->round != round_) return;
  base::Logger& log = server_.log();
  if (!check->changed) return log.debug("TLS reload skipped: materials unchanged");
  log.notice("TLS materials changed, reloading in background");
  if (!check->context) {
    log.warning(check->context.error());
    return log.warning("Background TLS reload failed");
  }
  stamps_ = std::move(check->stamps);
  install_(*std::move(check->context));
  log.notice("TLS materials reloaded successfully");
}

}  // namespace latchkey::server
