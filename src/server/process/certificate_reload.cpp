#include "server/process/certificate_reload.h"

#include <utility>

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
  if (!timer_.has_value()) timer_.emplace(*server_.loop(), [this] { start_look(); });
  const uint64_t interval_ms = uint64_t{1000} * static_cast<uint64_t>(interval_s_);
  timer_->start(interval_ms, interval_ms);
}

void CertificateReload::start_look() {
  if (looking_) return;
  looking_ = true;
  if (!waker_.has_value()) waker_.emplace(*server_.loop(), [this] { finish_look(); });
  if (!worker_.has_value()) worker_.emplace("tls-reload");
  worker_->run([this, round = round_, settings = *settings_, before = stamps_] {
    Look look;
    look.round = round;
    look.stamps = tls::stamps_of(settings);
    look.changed = look.stamps != before;
    if (look.changed) look.context = tls::Context::make(settings);
    {
      const std::lock_guard lock(mutex_);
      done_ = std::move(look);
    }
    waker_->wake();
  });
}

void CertificateReload::finish_look() {
  std::optional<Look> look;
  {
    const std::lock_guard lock(mutex_);
    look = std::exchange(done_, std::nullopt);
  }
  if (!look.has_value()) return;
  looking_ = false;
  if (look->round != round_) return;
  base::Logger& log = server_.log();
  if (!look->changed) return log.debug("TLS reload skipped: materials unchanged");
  log.notice("TLS materials changed, reloading in background");
  if (!look->context) {
    log.warning(look->context.error());
    return log.warning("Background TLS reload failed");
  }
  stamps_ = std::move(look->stamps);
  install_(*std::move(look->context));
  log.notice("TLS materials reloaded successfully");
}

}  // namespace latchkey::server
