// Whole datasets as RDB: what SAVE writes, what begins an append-only file, what a master sends.
//
// Writing only reads the server, takes nothing but memory, and logs nothing: it may run in a forked
// child. Reading fills the server's databases as it goes; what has been read stays when the rest
// cannot be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "persist/byte_stream.h"
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
  // Auxiliary fields besides those every file has, such as repl-id.
  std::vector<std::pair<std::string, std::string>> aux;
  // Called behind each key with the number of keys written so far, for progress and delays. When it
  // returns false the sink fails with ECANCELED.
  std::function<bool(uint64_t keys)> after_key;
};

// As the settings of the server say.
WriteOptions write_options(server::Server& server);

// Writes all databases and flushes the sink. Keys past their deadline that have not been removed
// are written too: whoever reads decides. False when the sink has failed; its error() tells.
bool write_dataset(ByteSink& sink, server::Server& server, const WriteOptions& options);

// --- Reading ------------------------------------------------------------------------------------

struct ReadOptions {
  bool verify_checksum = true;    // rdbchecksum
  bool drop_expired = true;       // as a master does with keys past their deadline
  bool replace_existing = false;  // instead of refusing keys and functions that are there
  // Where it goes, as many as the server has; empty: the server's own databases.
  std::span<const std::unique_ptr<store::Keyspace>> databases = {};
  // Where the code of function libraries goes; null: they become the server's own.
  std::vector<std::string>* functions = nullptr;
  // Called behind each key with the number of keys read so far.
  std::function<void(uint64_t keys)> after_key;
  // Called for each key that is dropped because it has expired.
  std::function<void(int database, std::string_view key)> key_dropped;
};

// As the settings and the role of the server say.
ReadOptions read_options(server::Server& server);

struct ReadReport {
  bool ok = false;
  // The lines a log should show for what went wrong; the last one names offset and reason.
  std::vector<std::string> errors;
  // The file is not what it should be, as opposed to: it cannot be used here (another version, too
  // many databases), or it could not be read.
  bool is_damaged = false;

  uint64_t keys_loaded = 0;
  uint64_t keys_expired = 0;
  uint64_t empty_keys_skipped = 0;
  // The auxiliary fields as they came.
  std::vector<std::pair<std::string, std::string>> aux;
  // Null when there is no such field.
  const std::string* find_aux(std::string_view name) const;
};

// Reads a dataset up to its end, whose place is source.offset(). The source must not have a
// checksum enabled yet. Logs what the reference logs on the way: by whom the file was made, its
// age, what was skipped. Deadlines of keys are only looked at when `drop_expired`; the caller sees
// to it that nothing expires meanwhile (Environment::Expired::kShow), and serves clients from the
// source's progress callback.
ReadReport read_dataset(ByteSource& source, server::Server& server, const ReadOptions& options);

}  // namespace latchkey::persist
