// Replaces certificates when their files change (the directive tls-auto-reload-interval, of Valkey
// 9.1): checks the files every so many seconds, and makes a new context if one has changed. Both
// are done by a thread of its own, so that neither slow disks nor large bundles of authorities
// delay clients. Files of which no context can be made are tried again at the next check, and the
// context stays.
//
// Without an interval, or without TLS, it has no thread and no timer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/worker.h"
#include "net/loop.h"
#include "tls/certificate.h"
#include "tls/context.h"

namespace latchkey::server {

class Server;

class CertificateReload {
 public:
  using Install = std::function<void(std::unique_ptr<tls::Context>)>;

  // `install` is given the new contexts, on the loop.
  CertificateReload(Server& server, Install install);
  CertificateReload(const CertificateReload&) = delete;
  CertificateReload& operator=(const CertificateReload&) = delete;

  // Watches the files of `settings` from now on, of which a context was made; `stamps` were taken
  // before. The result of a check that is under way is dropped.
  void watch(tls::Settings settings, std::vector<tls::FileStamp> stamps);
  // There is no context any more.
  void stop();
  // Follows the directive.
  void set_interval(int seconds);

 private:
  struct Check {
    uint64_t round = 0;  // round_ when it began
    std::vector<tls::FileStamp> stamps;
    bool changed = false;
    base::Result<std::unique_ptr<tls::Context>> context = nullptr;  // made where it changed
  };

  void schedule();
  void start_check();
  void finish_check();

  Server& server_;
  Install install_;
  int interval_s_ = 0;
  uint64_t round_ = 0;  // counts the calls of watch() and stop()
  std::optional<tls::Settings> settings_;
  std::vector<tls::FileStamp> stamps_;  // of the files in use
  bool checking_ = false;
  std::optional<net::Timer> timer_;
  std::mutex mutex_;
  std::optional<Check> done_;  // guarded by mutex_
  std::optional<net::Waker> waker_;
  // The last, so that its thread has ended before what that uses goes.
  std::optional<base::Worker> worker_;
};

}  // namespace latchkey::server
