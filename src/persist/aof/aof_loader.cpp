#include "persist/aof/aof_loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/text/number.h"
#include "base/text/up_to_nul.h"
#include "persist/loading.h"
#include "persist/rdb/rdb_file.h"
#include "persist/rdb/rdb_header.h"
#include "server/client/client.h"
#include "server/client/pubsub.h"
#include "server/command/command_context.h"
#include "server/command/dispatcher.h"
#include "server/command/unexpected_errors.h"
#include "server/server.h"

namespace latchkey::persist {

using server::Client;
using server::Command;

namespace {

// Replies are dropped when they exceed this size, and at the end.
constexpr size_t kMaxReplies = 64 * 1024;

bool begins_with_rdb(int descriptor) {
  char bytes[kRdbSignatureBytes];
  return pread(descriptor, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes) &&
         begins_like_rdb({bytes, sizeof bytes});
}

// "ERR unknown command 'bla'" without its first word.
std::string without_code(std::string_view error) {
  return std::string(error.substr(error.find(' ') + 1));
}

}  // namespace

void AofLoader::Words::views(size_t first, std::vector<std::string_view>* out) const {
  size_t begin = first == 0 ? 0 : ends[first - 1];
  for (size_t i = first; i < ends.size(); ++i) {
    out->push_back(std::string_view(bytes).substr(begin, ends[i] - begin));
    begin = ends[i];
  }
}

AofLoader::AofLoader(server::Server& server)
    : server_(server), client_(server.clients().add_internal()) {
  client_.set(server::kClientInternal | server::kClientDenyBlocking);
}

void AofLoader::begin() {
  client_.database = 0;
  in_transaction_ = false;
  valid_ = 0;
}

AofLoader::Result AofLoader::load(const File& file, LoadingScope& scope) {
  base::Logger& log = server_.log();
  const base::Descriptor descriptor(base::open_regular(file.path, O_RDONLY, server_.files()),
                                    server_.files());
  if (!descriptor.is_open()) {
    log.warning("Fatal error: can't open the append log file " + file.name +
                " for reading: " + base::read_error_text(errno));
    return Result::kFailed;
  }
  struct stat status {};
  if (fstat(descriptor.number(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0)
    return Result::kEmpty;
  begin();
  DescriptorSource source(server_.files(), descriptor.number());
  const auto watch = scope.watch(source, file.bytes_before);
  if (begins_with_rdb(descriptor.number()) && !read_preamble(source, file, scope)) {
    return source.error() == ByteSource::Error::kStopped ? Result::kStopped : Result::kFailed;
  }
  valid_ = source.offset();
  scope_ = &scope;
  const Step step = run_all(source);
  scope_ = nullptr;
  return result_of(step, file, source);
}

AofLoader::Result AofLoader::load_bytes(std::string_view bytes, uint64_t* valid) {
  begin();
  MemorySource source(bytes);
  const Step step = run_all(source);
  *valid = valid_;
  return step == Step::kEnd ? Result::kDone : Result::kFailed;
}

bool AofLoader::read_preamble(ByteSource& source, const File& file, LoadingScope& scope) {
  base::Logger& log = server_.log();
  log.notice(file.is_old_style ? "Reading RDB preamble from AOF file..."
                               : "Reading RDB base file on AOF loading...");
  ReadOptions how;
  how.verify_checksum = server_.settings().rdbchecksum;
  // The requests that follow may concern keys that have expired since.
  how.drop_expired = false;
  how.after_key = [&scope](uint64_t keys) { scope.key_loaded(keys); };
  const ReadReport report = read_dataset(source, server_, how);
  const int read_error = errno;
  if (report.ok) {
    if (file.is_old_style) log.notice("Reading the remaining AOF tail...");
    return true;
  }
  if (source.error() == ByteSource::Error::kStopped) return false;
  if (source.error() == ByteSource::Error::kFailed)
    log.warning("Error reading the append only file " + file.name + ": " + strerror(read_error));
  for (const std::string& error : report.errors) log.warning(error);
  log.warning(file.is_old_style
                  ? "Error reading the RDB preamble of the AOF file " + file.name +
                        ", AOF loading aborted"
                  : "Error reading the RDB base file " + file.name + ", AOF loading aborted");
  return false;
}

AofLoader::Result AofLoader::result_of(Step step, const File& file, ByteSource& source) {
  base::Logger& log = server_.log();
  client_.out().clear();
  server_.pubsub().unsubscribe_all(client_);
  words_ = queued_words_ = {};
  switch (step) {
    case Step::kRan:
    case Step::kEnd:
      return Result::kDone;
    case Step::kStopped:
      return Result::kStopped;
    case Step::kFailed:
      log.warning("Unrecoverable error reading the append only file " + file.name + ": " +
                  strerror(errno));
      return Result::kFailed;
    case Step::kRefused:
      log.warning(refusal_of(file));
      return Result::kFailed;
    case Step::kMalformed:
      return cut_malformed(file, source.offset());
    case Step::kCutShort:
      return cut(file);
  }
  return Result::kFailed;
}

// What the log says of a request that cannot be run.
std::string AofLoader::refusal_of(const File& file) const {
  if (!explains_refusals())
    return "Unknown command '" + refusal_ + "' reading the append only file " + file.name;
  return "Error reading the append only file " + file.name + ", error: " + refusal_;
}

// Whether the log has the reason of a refusal, as Valkey's has. It reports a wrong number of
// arguments as an unknown command.
bool AofLoader::explains_refusals() const {
  return server_.edition().is_valkey_since({8, 1});
}

AofLoader::Result AofLoader::cut(const File& file) {
  base::Logger& log = server_.log();
  if (in_transaction_)
    log.warning("Revert incomplete MULTI/EXEC transaction in AOF file " + file.name);
  if (!server_.settings().aof_load_truncated) {
    log.warning("Unexpected end of file reading the append only file " + file.name +
                ". You can: 1) Make a backup of your AOF file, then use ./redis-check-aof --fix "
                "<filename.manifest>. 2) Alternatively you can set the 'aof-load-truncated' "
                "configuration option to yes and restart the server.");
    return Result::kFailed;
  }
  log.warning("!!! Warning: short read while loading the AOF file " + file.name + "!!!");
  if (!file.is_last) {
    log.warning("Fatal error: the truncated file is not the last file");
    return Result::kFailed;
  }
  log.warning("!!! Truncating the AOF " + file.name + " at offset " + std::to_string(valid_) +
              " !!!");
  if (!truncate_file(file)) return Result::kFailed;
  log.warning("AOF " + file.name + " loaded anyway because aof-load-truncated is enabled");
  return Result::kTruncated;
}

AofLoader::Result AofLoader::cut_malformed(const File& file, uint64_t offset) {
  base::Logger& log = server_.log();
  log.warning("The append only file " + file.name + " cannot be understood at offset " +
              std::to_string(offset) + "; it can be up to offset " + std::to_string(valid_));
  struct stat status {};
  const bool sized = stat(file.path.c_str(), &status) == 0;
  const int64_t tail = sized ? status.st_size - static_cast<int64_t>(valid_) : INT64_MAX;
  if (tail > server_.settings().aof_load_corrupt_tail_max_size) {
    std::string error = "Bad file format reading the append only file " + file.name +
                        ": make a backup of your AOF file, then use ./redis-check-aof --fix "
                        "<filename.manifest>.";
    if (sized)
      error +=
          " Alternatively you can set the 'aof-load-corrupt-tail-max-size' configuration "
          "option to " +
          std::to_string(tail) + " and restart the server.";
    log.warning(error);
    return Result::kFailed;
  }
  log.warning("!!! Warning: corrupt AOF file tail!!!");
  log.warning("!!! Truncating the AOF " + file.name + " at offset " + std::to_string(valid_) +
              " (remaining " + std::to_string(tail) + ") !!!");
  if (!truncate_file(file)) return Result::kFailed;
  log.warning("AOF " + file.name +
              " loaded anyway because aof-load-corrupt-tail-max-size is enabled");
  return Result::kTruncated;
}

bool AofLoader::truncate_file(const File& file) {
  base::FileSystem& files = server_.files();
  const base::Descriptor descriptor(file.path, O_WRONLY, files);
  if (descriptor.is_open() && files.truncate(descriptor.number(), valid_)) return true;
  server_.log().warning("Error truncating the AOF file " + file.name + ": " + strerror(errno));
  return false;
}

// --- Reading -------------------------------------------------------------------------------------

// Reads the number of a line such as "*3" or "$11", after its first character.
AofLoader::Read AofLoader::read_number(ByteSource& source, int64_t* number) {
  char line[base::kMaxInt64Text];
  size_t size = 0;
  uint8_t byte = 0;
  for (;;) {
    if (!source.read_byte(&byte)) return Read::kCutShort;
    if (byte == '\r') break;
    if (size == sizeof line) return Read::kMalformed;
    line[size++] = static_cast<char>(byte);
  }
  if (!source.read_byte(&byte)) return Read::kCutShort;
  return byte == '\n' && base::parse_int64({line, size}, number) ? Read::kOk : Read::kMalformed;
}

AofLoader::Read AofLoader::skip_annotation(ByteSource& source) {
  for (uint8_t byte = 0; byte != '\n';) {
    if (!source.read_byte(&byte)) return Read::kCutShort;
  }
  return Read::kOk;
}

// Reads the words of one request into words_; none for an annotation.
AofLoader::Read AofLoader::read_request(ByteSource& source) {
  constexpr std::string_view kLineEnd = "\r\n";
  words_.clear();
  uint8_t kind = 0;
  if (!source.read_byte(&kind)) return Read::kCutShort;
  if (kind == '#') return skip_annotation(source);
  if (kind != '*') return Read::kMalformed;
  int64_t count = 0;
  if (const Read read = read_number(source, &count); read != Read::kOk) return read;
  if (count < 1) return Read::kMalformed;
  for (; count > 0; --count) {
    int64_t size = 0;
    if (!source.read_byte(&kind)) return Read::kCutShort;
    if (kind != '$') return Read::kMalformed;
    if (const Read read = read_number(source, &size); read != Read::kOk) return read;
    if (size < 0) return Read::kMalformed;
    std::string_view word;
    if (!source.read_view(static_cast<uint64_t>(size), room_, &word)) return Read::kCutShort;
    words_.bytes.append(word);
    words_.ends.push_back(words_.bytes.size());
    char line_end[kLineEnd.size()];
    if (!source.read(line_end, sizeof line_end)) return Read::kCutShort;
    if (std::string_view(line_end, sizeof line_end) != kLineEnd) return Read::kMalformed;
  }
  return Read::kOk;
}

// --- Running -------------------------------------------------------------------------------------

AofLoader::Step AofLoader::run_all(ByteSource& source) {
  Step step = Step::kRan;
  while (step == Step::kRan) step = run_one(source);
  return step;
}

AofLoader::Step AofLoader::run_one(ByteSource& source) {
  if (source.at_end() && source.ok()) return in_transaction_ ? Step::kCutShort : Step::kEnd;
  const Read read = read_request(source);
  if (source.error() == ByteSource::Error::kStopped) return Step::kStopped;
  if (source.error() == ByteSource::Error::kFailed) return Step::kFailed;
  if (read == Read::kMalformed) return Step::kMalformed;
  if (read == Read::kCutShort) return Step::kCutShort;
  if (words_.ends.empty()) {
    // An annotation.
    if (!in_transaction_) valid_ = source.offset();
    return Step::kRan;
  }
  const Step step = run_words(source.offset());
  words_.clear();
  ++requests_;
  if (scope_ != nullptr) scope_->request_run(requests_);
  return step;
}

AofLoader::Step AofLoader::run_words(uint64_t end) {
  views_.clear();
  words_.views(0, &views_);
  const std::string_view name = views_[0];
  if (!in_transaction_ && server::is_word(name, "MULTI")) {
    in_transaction_ = true;
    queued_words_.clear();
    queued_ends_.clear();
    return Step::kRan;
  }
  if (in_transaction_ && !server::is_word(name, "EXEC")) {
    queued_words_.bytes.append(words_.bytes);
    const size_t base = queued_words_.bytes.size() - words_.bytes.size();
    for (const size_t word_end : words_.ends) queued_words_.ends.push_back(base + word_end);
    queued_ends_.push_back(queued_words_.ends.size());
    return Step::kRan;
  }
  if (!in_transaction_) {
    if (!run(views_)) return refusal_.empty() ? Step::kMalformed : Step::kRefused;
  } else {
    in_transaction_ = false;
    views_.clear();
    queued_words_.views(0, &views_);
    size_t begin = 0;
    for (const size_t request_end : queued_ends_) {
      if (!run(std::span(views_).subspan(begin, request_end - begin)))
        return refusal_.empty() ? Step::kMalformed : Step::kRefused;
      begin = request_end;
    }
  }
  valid_ = end;
  return server_.stop_requested() ? Step::kStopped : Step::kRan;
}

// False when there is no such command, or it does not accept that many words. Sets `refusal_` to
// what the log shall say of it; empty when it is to be taken for a malformed file.
bool AofLoader::run(std::span<const std::string_view> words) {
  refusal_.clear();
  Command* command = server_.dispatcher().lookup(words);
  if (command == nullptr) {
    refusal_ = explains_refusals() ? without_code(server_.dispatcher().unknown_command_error(words))
                                   : base::up_to_nul(words[0]);
    if (refusal_.empty()) refusal_ = "?";
    return false;
  }
  if (!command->accepts_word_count(words.size())) {
    if (explains_refusals())
      refusal_ = "wrong number of arguments for '" + std::string(command->full_name) + "' command";
    return false;
  }
  const std::string_view error = server_.dispatcher().replay(client_, *command, words);
  if (!error.empty()) failed(error);
  if (client_.out().size() > kMaxReplies) client_.out().clear();
  return true;
}

void AofLoader::failed(std::string_view error) {
  const std::string behind =
      server::note_unexpected_error(client_, error, "server", "AOF-loading-client");
  if (server_.settings().propagation_error_behavior == server::PropagationErrorBehavior::kPanic)
    server_.panic("This server panicked sending an error to its AOF-loading-client" + behind,
                  __FILE__, __LINE__);
}

}  // namespace latchkey::persist
