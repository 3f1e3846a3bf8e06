// ACL LOG: refused requests and logins, the latest first. Equal refusals that follow one another
// within a minute share an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>

namespace latchkey::server::acl {

struct Denial {
  enum class Reason : uint8_t { kCommand, kKey, kChannel, kAuth, kTlsCertificate, kDatabase };
  enum class Context : uint8_t { kToplevel, kMulti, kScript };
  Reason reason;
  Context context;
  // The command, key, channel or database; for a login the command that tried it.
  std::string object;
  std::string user;
  // As in CLIENT INFO.
  std::string client;
};

class DenialLog {
 public:
  struct Entry {
    Denial denial;  // the latest of the group
    uint64_t id;
    uint64_t count;
    int64_t created_ms;  // Unix time
    int64_t updated_ms;
  };

  // Adds a refusal and drops the oldest entries beyond `most`. Constant, except for the entries
  // dropped.
  void add(Denial denial, int64_t now_ms, size_t most);
  void clear() { entries_.clear(); }
  const std::list<Entry>& entries() const { return entries_; }

 private:
  std::list<Entry> entries_;
  uint64_t next_id_ = 0;
};

}  // namespace latchkey::server::acl
