// Whole datasets as RDB: for SAVE, for the beginning of an append-only file, and for replicas.
//
// Writing only reads the server, allocates only memory, and logs nothing, so it may run in a forked
// child. Reading fills the server's databases as it goes; what was read before a failure stays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "persist/rdb/byte_stream.h"
#include "server/command/slot_gate.h"
#include "store/keyspace.h"

namespace latchkey::server {
class Server;
}

namespace latchkey::persist {

// --- Writing ------------------------------------------------------------------------------------

struct WriteOptions {
  bool compress = true;  // rdbcompression
  bool checksum = true;  // rdbchecksum; without it the file ends with zeros
  bool is_aof_preamble = false;
  bool with_keys = true;
  bool with_functions = true;
  // Of the format; 0: that of the server's edition.
  int version = 0;
  // Auxiliary fields besides the standard ones, such as repl-id.
  std::vector<std::pair<std::string, std::string>> aux;
  // What has been written, for a line of the log; may be null.
  struct Tally {
    uint64_t saved = 0;
    uint64_t skipped = 0;  // in slots that are being deleted (store/hidden_slots.h)
  };
  Tally* tally = nullptr;
  // Called after each key with the number of keys written so far, for progress and delays. If it
  // returns false, the sink fails with ECANCELED.
  std::function<bool(uint64_t keys)> after_key;
};

// The options by the server's settings.
WriteOptions write_options(server::Server& server);

// Writes all databases and flushes the sink. Writes keys past their deadline too, if they have not
// been removed: the reader decides about them. False when the sink has failed; see its error().
bool write_dataset(ByteSink& sink, server::Server& server, const WriteOptions& options);

// --- Reading ------------------------------------------------------------------------------------

struct ReadOptions {
  bool verify_checksum = true;    // rdbchecksum
  bool drop_expired = true;       // drop keys past their deadline, as a master does
  bool replace_existing = false;  // instead of refusing existing keys and functions
  // The destination, as many databases as the server has; empty: the server's own databases.
  std::span<const std::unique_ptr<store::Keyspace>> databases = {};
  // The destination for the code of function libraries; null: the server's own functions.
  std::vector<std::string>* functions = nullptr;
  // Called after each key with the number of keys read so far.
  std::function<void(uint64_t keys)> after_key;
  // Called for each key that is dropped because it has expired.
  std::function<void(int database, std::string_view key)> key_dropped;
};

// The options by the server's settings and role.
ReadOptions read_options(server::Server& server);

// The auxiliary field for server::DatasetSlots::moves.
inline constexpr std::string_view kSlotMovesField = "cluster-slot-states";

struct ReadReport {
  bool ok = false;
  server::DatasetSlots slots;
  // Log lines that explain the failure; the last one has the offset and the reason.
  std::vector<std::string> errors;
  // Whether the file itself is invalid; false if it cannot be used here (another version, too many
  // databases) or could not be read.
  bool is_damaged = false;

  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  uint64_t empty_keys_skipped = 0;
  // The auxiliary fields in the order of the file.
  std::vector<std::pair<std::string, std::string>> aux;
  // Null when there is no such field.
  const std::string* find_aux(std::string_view name) const;
};

// Reads the file's header. Fails when this server does not load such files, which the error
// explains, or when the file ends; then the error is empty.
base::Result<> check_rdb_version(ByteSource& source, server::Server& server);

// Reads a dataset up to its end, which is then source.offset(). REQUIRES: the source has no
// checksum enabled. Logs what the reference logs while reading: which server made the file, its
// age, what was skipped. Checks deadlines of keys only if `drop_expired`; the caller must prevent
// expiry meanwhile (Environment::Expired::kShow), and serves clients from the source's progress
// callback.
ReadReport read_dataset(ByteSource& source, server::Server& server, const ReadOptions& options);

}  // namespace latchkey::persist
