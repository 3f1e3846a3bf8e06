#include "sentinel/sentinel_server.h"

#include <netdb.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/time_units.h"
#include "sentinel/directives.h"
#include "server/client/pubsub.h"
#include "server/observe/info.h"
#include "server/server.h"

namespace latchkey::sentinel {

using base::LogLevel;
using server::ConfigError;
using server::InfoSections;
using server::InfoText;

// A script that runs. libuv's handle lives until its close callback.
struct SentinelServer::Process {
  uv_process_t handle{};
  SentinelServer* owner = nullptr;  // null: it has gone
  int64_t pid = 0;
};

SentinelServer::SentinelServer(server::Server& server)
    : server_(server),
      network_(server),
      sentinel_(static_cast<Host&>(*this)),
      scripts_(static_cast<ScriptQueue::Launcher&>(*this), sentinel_.periods(),
               [this](std::string_view type, const std::string& message) {
                 sentinel_.event_text(LogLevel::kWarning, type, nullptr, message);
               }) {
  server_.log().set_role('X');
  constexpr std::array<std::string_view, 4> kSections = {"Server", "Clients", "Stats", "CPU"};
  server_.info().keep_only(kSections);
  server_.info().add("Sentinel", InfoSections::Shown::kDefault,
                     [this](InfoText& text) { write_info(text); });
  server_.config().on_rewrite("sentinel",
                              [this] { return directive_lines(sentinel_, server_.edition()); });
}

SentinelServer::~SentinelServer() {
  for (const auto& [pid, process] : processes_) process->owner = nullptr;
}

base::Result<void, ConfigError> SentinelServer::start() {
  const auto refuse = [](std::string message) {
    return base::fail_with(ConfigError::of(ConfigError::Kind::kFile, std::move(message)));
  };
  const std::string& file = server_.config().file();
  if (file.empty()) return refuse("Sentinel needs config file on disk to save state. Exiting...");
  if (access(file.c_str(), W_OK) != 0) {
    return refuse("Sentinel config file " + file + " is not writable: " + strerror(errno) +
                  ". Exiting...");
  }
  auto applied = apply_directives(server_.settings().sentinel_directives, &sentinel_);
  if (!applied) return applied;
  if (sentinel_.id().empty()) {
    constexpr size_t kIdDigits = 40;
    sentinel_.set_id(server_.random_source().hex(kIdDigits));
  }
  return {};
}

void SentinelServer::run() {
  save();
  server_.log().notice("Sentinel ID is " + sentinel_.id());
  for (const auto& [name, master] : sentinel_.masters()) {
    sentinel_.event(LogLevel::kWarning, "+monitor", *master,
                    " quorum " + std::to_string(master->quorum));
  }
  if (server_.loop() == nullptr) return;
  timer_ = std::make_unique<net::Timer>(*server_.loop(), [this] { tick(); });
  tick();
}

void SentinelServer::tick() {
  server_.refresh_clock();
  sentinel_.tick();
  scripts_.tick(now_ms());
  timer_->start(sentinel_.next_tick_ms());
}

// ---- Host

int64_t SentinelServer::now_ms() {
  return server_.clock().wall_us() / base::kUsPerMs;
}

uint64_t SentinelServer::random_below(uint64_t bound) {
  return server_.random_source().background().below(bound);
}

int SentinelServer::port() {
  const auto& settings = server_.settings();
  const bool secure = settings.tls_replication && settings.tls_port != 0;
  return secure || settings.port == 0 ? settings.tls_port : settings.port;
}

std::string SentinelServer::password() {
  return server_.settings().requirepass;
}

std::string SentinelServer::resolve(const std::string& hostname) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(hostname.c_str(), nullptr, &hints, &found) != 0) {
    server_.log().warning("Failed to resolve hostname '" + hostname + "'");
    return {};
  }
  // An IPv4 address, if there is one: other Sentinels resolve the name too, and should get the
  // same.
  const addrinfo* best = found;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    if (next->ai_family != AF_INET) continue;
    best = next;
    break;
  }
  std::array<char, NI_MAXHOST> text{};
  const int status = getnameinfo(best->ai_addr, best->ai_addrlen, text.data(),
                                 static_cast<socklen_t>(text.size()), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return status == 0 ? text.data() : "";
}

void SentinelServer::log(LogLevel level, std::string_view text) {
  server_.log().log(level, text);
}

void SentinelServer::publish(std::string_view channel, std::string_view message) {
  server_.enter();
  server_.pubsub().publish(channel, message);
}

bool SentinelServer::save() {
  // Of a Sentinel without a file there is none to keep (unit tests).
  if (server_.config().file().empty()) return true;
  auto rewritten = server_.config().rewrite();
  if (rewritten) {
    server_.log().notice("Sentinel new configuration saved on disk");
    return true;
  }
  std::string error = std::move(rewritten).error();
  constexpr std::string_view kPrefix = "Rewriting config file: ";
  if (error.starts_with(kPrefix)) error.erase(0, kPrefix.size());
  server_.log().warning(
      "WARNING: Sentinel was not able to save the new configuration on disk!!!: " + error);
  return false;
}

void SentinelServer::crash() {
  constexpr int kExitStatus = 99;
  server_.log().warning("Sentinel CRASH because of SENTINEL simulate-failure");
  std::_Exit(kExitStatus);
}

// ---- Scripts

int64_t SentinelServer::start(const std::vector<std::string>& words) {
  if (server_.loop() == nullptr) return 0;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<uv_stdio_container_t, 3> streams{};
  for (int i = 0; i < 3; ++i) {
    streams[static_cast<size_t>(i)].flags = UV_INHERIT_FD;
    streams[static_cast<size_t>(i)].data.fd = i;
  }
  uv_process_options_t options{};
  options.file = arguments[0];
  options.args = arguments.data();
  options.stdio = streams.data();
  options.stdio_count = static_cast<int>(streams.size());
  options.exit_cb = [](uv_process_t* handle, int64_t exit_status, int signal) {
    auto* const process = static_cast<Process*>(handle->data);
    if (SentinelServer* const owner = process->owner; owner != nullptr) {
      owner->server_.refresh_clock();
      owner->server_.log().debug("-script-child " + std::to_string(process->pid) + ' ' +
                                 std::to_string(exit_status) + ' ' + std::to_string(signal));
      owner->processes_.erase(process->pid);
      owner->scripts_.ended(process->pid, static_cast<int>(exit_status), signal, owner->now_ms());
    }
    uv_close(reinterpret_cast<uv_handle_t*>(handle),
             [](uv_handle_t* closed) { delete static_cast<Process*>(closed->data); });
  };
  auto* const process = new Process;
  process->handle.data = process;
  if (uv_spawn(server_.loop()->handle(), &process->handle, &options) != 0) {
    uv_close(reinterpret_cast<uv_handle_t*>(&process->handle),
             [](uv_handle_t* closed) { delete static_cast<Process*>(closed->data); });
    return 0;
  }
  process->owner = this;
  process->pid = process->handle.pid;
  processes_.emplace(process->pid, process);
  server_.log().debug("+script-child " + std::to_string(process->pid));
  return process->pid;
}

void SentinelServer::kill(int64_t pid) {
  const auto found = processes_.find(pid);
  if (found != processes_.end()) uv_process_kill(&found->second->handle, SIGKILL);
}

// ---- INFO

void SentinelServer::write_info(InfoText& text) {
  const auto& masters = sentinel_.masters();
  const int64_t now = now_ms();
  text.field("sentinel_masters", masters.size());
  text.field("sentinel_tilt", sentinel_.in_tilt() ? 1 : 0);
  text.field("sentinel_tilt_since_seconds",
             sentinel_.in_tilt() ? (now - sentinel_.tilt_since_ms()) / base::kMsPerSecond : -1);
  text.field("sentinel_total_tilt", sentinel_.tilts());
  text.field("sentinel_running_scripts", scripts_.running());
  text.field("sentinel_scripts_queue_length", scripts_.jobs().size());
  text.field("sentinel_simulate_failure_flags", sentinel_.simulated_failures());
  size_t number = 0;
  for (const auto& [name, master] : masters) {
    std::string_view status = "ok";
    if (master->has(kSdown)) status = "sdown";
    if (master->has(kOdown)) status = "odown";
    text.field("master" + std::to_string(number++),
               "name=" + name + ",status=" + std::string(status) +
                   ",address=" + sentinel_.announced_host(master->address) + ':' +
                   std::to_string(master->address.port) +
                   ",slaves=" + std::to_string(master->replicas.size()) +
                   ",sentinels=" + std::to_string(master->sentinels.size() + 1));
  }
}

}  // namespace latchkey::sentinel
