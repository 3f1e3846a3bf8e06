#include "persist/loading.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/file.h"
#include "base/text/number.h"
#include "base/time_units.h"
#include "persist/check_rdb.h"
#include "persist/key_delay.h"
#include "persist/persistence.h"
#include "persist/rdb/byte_stream.h"
#include "persist/rdb/rdb_file.h"
#include "server/client/client.h"
#include "server/command/command_context.h"
#include "server/emulation/valkey_words.h"
#include "server/function_libraries.h"
#include "server/server.h"
#include "server/tasks.h"

namespace latchkey::persist {

using namespace server;

namespace {

std::optional<StreamPlace> place_of(const ReadReport& report) {
  const std::string* id = report.find_aux("repl-id");
  const std::string* offset = report.find_aux("repl-offset");
  const std::string* database = report.find_aux("repl-stream-db");
  StreamPlace place;
  int64_t index = 0;
  if (id == nullptr || id->size() != ReplicationHistory::kIdDigits || offset == nullptr ||
      !base::parse_int64(*offset, &place.offset) || place.offset < 0)
    return std::nullopt;
  if (database != nullptr && base::parse_int64(*database, &index) && index >= 0)
    place.database = static_cast<int>(std::min<int64_t>(index, std::numeric_limits<int>::max()));
  place.id = *id;
  return place;
}

}  // namespace

void LoadingFigures::describe(int64_t now_us, PersistenceFigures* figures) const {
  figures->keys_loaded = keys_loaded;
  figures->keys_expired = keys_expired;
  figures->loading_since_s = since_us / base::kUsPerSecond;
  figures->loading_total_bytes = total_bytes;
  figures->loading_done_bytes = done_bytes;
  figures->loading_dataset_memory = dataset_memory;
  const int64_t elapsed_s = (now_us - since_us) / base::kUsPerSecond;
  // One second until there is progress to extrapolate from.
  figures->loading_left_s = 1;
  if (elapsed_s > 0 && done_bytes > 0) {
    // What comes from a master may have no size, or more than was announced.
    const uint64_t left_bytes = total_bytes > done_bytes ? total_bytes - done_bytes : 1;
    figures->loading_left_s =
        static_cast<int64_t>(static_cast<uint64_t>(elapsed_s) * left_bytes / done_bytes);
  }
}

// --- While it is being loaded --------------------------------------------------------------------

LoadingScope::LoadingScope(Server& server, LoadingFigures& figures, uint64_t total_bytes,
                           bool beside)
    : server_(server),
      figures_(figures),
      state_(beside ? kStateAsyncLoading : kStateLoading),
      progress_(&server.log(), progress_terminal(), "Loading the dataset", ProgressUnit::kBytes,
                total_bytes, server.clock().monotonic_us()) {
  figures_ = {};
  figures_.since_us = server.clock().wall_us();
  figures_.total_bytes = total_bytes;
  server_.set_state(state_, true);
}

LoadingScope::~LoadingScope() {
  server_.set_state(state_, false);
}

ProgressWatch LoadingScope::watch(ByteSource& source, uint64_t base) {
  const auto every =
      static_cast<uint64_t>(server_.settings().loading_process_events_interval_bytes);
  if (every == 0) return source.on_progress(0, nullptr);
  return source.on_progress(every,
                            [this, base](uint64_t offset) { return serve_others(base + offset); });
}

bool LoadingScope::serve_others(uint64_t done_bytes) {
  figures_.done_bytes = done_bytes;
  progress_.at(done_bytes, server_.clock().monotonic_us());
  server_.tasks().yield();
  server_.refresh_clock();
  return !server_.stop_requested() && !server_.tasks().finishing();
}

void LoadingScope::key_loaded(uint64_t keys) {
  figures_.keys_loaded = keys;
  server_.pack_collections();
  pause_for_tests(keys);
}

void LoadingScope::pause_for_tests(uint64_t count) {
  delay_key(server_.settings().key_load_delay, count);
}

bool refuses_reload(CommandContext& ctx) {
  if ((ctx.server.state() & (kStateLoading | kStateAsyncLoading)) != 0) {
    ctx.reply.error(in_words_of(ctx.server, "LOADING Redis is loading the dataset in memory"));
    return true;
  }
  if (!ctx.client.has(kClientScript)) return false;
  ctx.reply.error("ERR The dataset cannot be reloaded by a script");
  return true;
}

void clear_dataset(Server& server) {
  server.hooks().dataset_replacing.run();
  for (int i = 0; i < server.database_count(); ++i) server.database(i).clear(/*lazily=*/false);
  server.events().flushed();
  if (server.functions() != nullptr) server.functions()->clear();
}

// --- Files ---------------------------------------------------------------------------------------

Loading::Result Loading::load_at_start() {
  Aof& aof = server_.layer<Persistence>().aof();
  if (!aof.read_manifest()) return Result::kFailed;
  const std::string& preloaded = server_.settings().preload_file;
  if (preloaded.empty()) {
    return server_.settings().appendonly ? load_own_aof(aof)
                                         : load_whole_snapshot(server_.settings().dbfilename);
  }
  constexpr size_t kPrefix = 4;  // "rdb:" or "aof:"
  const std::string path = preloaded.substr(kPrefix);
  Result result;
  if (preloaded.starts_with("rdb:")) {
    result = load_whole_snapshot(path);
  } else if (server_.settings().appendonly && path == absolute(aof.manifest_path())) {
    return load_own_aof(aof);
  } else {
    result = aof.load_other(path, figures_);
    if (result == Result::kFailed) advise("redis-check-aof", path);
  }
  if (result != Result::kNoFile) return result;
  server_.log().warning("The file that preload-file names is not there: " + path);
  return Result::kFailed;
}

Loading::Result Loading::load_own_aof(Aof& aof) {
  const Result result = aof.load_at_start(figures_);
  if (result == Result::kFailed) advise("redis-check-aof", aof.manifest_path());
  return result;
}

Loading::Result Loading::load_whole_snapshot(const std::string& name) {
  const int64_t started_us = server_.clock().monotonic_us();
  base::Logger& log = server_.log();
  const std::string path = server_.config().directory().path_of(name);
  bool is_damaged = false;
  const Result result = load_snapshot(
      name, {.place = &place_, .slots = &slots_, .dropped = &dropped_, .is_damaged = &is_damaged});
  if (result == Result::kDone) {
    const int64_t took_us = server_.clock().monotonic_us() - started_us;
    log.logf(base::LogLevel::kNotice, "DB loaded from disk: %.3f seconds",
             static_cast<double>(took_us) / base::kUsPerSecond);
  } else if (is_damaged) {
    // Logs the report of redis-check-rdb: which key is damaged, and how much before it is intact.
    check_rdb(path, server_.now_ms(), [&log](std::string_view line) { log.warning(line); });
    advise("redis-check-rdb", path);
    log.warning("Terminating server after rdb file reading failure.");
  } else if (result == Result::kFailed) {
    const int file = base::open_regular(path, O_RDONLY, server_.files());
    if (base::Descriptor(file, server_.files()).is_open()) advise("redis-check-rdb", path);
    log.warning("Fatal error loading the DB, check server logs. Exiting.");
  }
  return result;
}

std::string Loading::absolute(const std::string& path) const {
  return path.starts_with('/') ? path : server_.config().directory().current() + '/' + path;
}

void Loading::advise(std::string_view tool, const std::string& path) {
  // The log of an emulated release ends as that one's does.
  if (server_.edition().emulates()) return;
  server_.log().warning("The dataset could not be read from " + absolute(path) +
                        ". Look into it with: " + std::string(tool) + ' ' + absolute(path));
}

bool Loading::may_load(const std::string& path) {
  const base::Descriptor file(path, O_RDONLY, server_.files());
  if (!file.is_open()) return true;
  DescriptorSource source(server_.files(), file.number());
  const base::Result<> checked = check_rdb_version(source, server_);
  if (checked) return true;
  server_.log().warning(checked.error().empty() ? "The RDB file is too short" : checked.error());
  return false;
}

Loading::Result Loading::load_snapshot(const std::string& name, const FileOptions& options) {
  base::Logger& log = server_.log();
  const std::string path = server_.config().directory().path_of(name);
  const base::Descriptor file(base::open_regular(path, O_RDONLY, server_.files()), server_.files());
  if (!file.is_open()) {
    if (errno == ENOENT) return Result::kNoFile;
    log.logf(base::LogLevel::kWarning, "Fatal error: can't open the RDB file %s for reading: %s",
             name.c_str(), base::read_error_text(errno).c_str());
    return Result::kFailed;
  }
  DescriptorSource source(server_.files(), file.number());
  return load_from(source, file.size().value_or(0), options);
}

Loading::Result Loading::load_from(ByteSource& source, uint64_t total_bytes,
                                   const FileOptions& options) {
  LoadingScope scope(server_, figures_, total_bytes, options.serves_old);
  // The caller may read on from the source when this scope has ended.
  const auto watch = scope.watch(source);
  ReadOptions how = read_options(server_);
  how.replace_existing = options.replace_existing;
  how.databases = options.databases;
  how.functions = options.functions;
  if (options.dropped != nullptr) {
    how.key_dropped = [&options](int database, std::string_view key) {
      options.dropped->emplace_back(database, key);
    };
  }
  how.after_key = [&scope](uint64_t keys) { scope.key_loaded(keys); };
  const ReadReport report = read_dataset(source, server_, how);
  const int error = errno;
  figures_.keys_loaded = report.keys_loaded;
  figures_.keys_expired = report.keys_expired;
  figures_.done_bytes = source.offset();
  if (report.ok && options.place != nullptr) *options.place = place_of(report);
  if (options.slots != nullptr) *options.slots = report.slots;
  if (report.ok) return Result::kDone;
  if (source.error() == ByteSource::Error::kStopped) return Result::kStopped;
  if (source.error() == ByteSource::Error::kFailed)
    server_.log().warning(std::string("Error reading the dataset: ") + strerror(error));
  for (const std::string& line : report.errors) server_.log().warning(line);
  if (options.is_damaged != nullptr) *options.is_damaged = report.is_damaged;
  return Result::kFailed;
}

}  // namespace latchkey::persist
