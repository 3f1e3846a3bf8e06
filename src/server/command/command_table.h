// The set of all commands (CommandSet), and the commands of one server with their statistics
// (CommandTable).
//
// A CommandSet is filled from the rows of all subsystems and then never changes, so that any number
// of servers share one. A CommandTable belongs to one server: it counts calls and renames commands,
// and the dispatcher looks commands up in it. It makes a Command of its own of each that the server
// uses, when it is first looked up; a server that does nothing holds a pointer for each.
//
// Commands of a table live as long as it and do not move. Looking one up costs a few nanoseconds
// and allocates nothing but the first time: one multiplication, one probe of an open-addressing
// table (loaded to an eighth), one comparison of at most two words.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/latency_histogram.h"
#include "base/result.h"
#include "server/command/command.h"
#include "server/command/command_descriptions.h"
#include "server/emulation/edition.h"
#include "server/observe/stats.h"

namespace latchkey::server {

class LaterOptions;
struct ConfigError;
struct DeferredDirective;

// The figures of INFO commandstats; reset by CONFIG RESETSTAT.
struct CommandStats {
  uint64_t calls = 0;
  uint64_t total_ticks = 0;  // of base::CycleClock
  uint64_t rejected_calls = 0;
  uint64_t failed_calls = 0;
  SlowCalls slow_calls;
  // How long calls took; null until one was measured (latency-tracking).
  std::unique_ptr<base::LatencyHistogram> latency;
};

struct Command;

// What follows from a row. What the dispatcher reads comes first.
struct CommandFacts {
  Handler handler = nullptr;
  // CommandFlag bits, kMovableKeys included.
  uint32_t flags = 0;
  // The ServerState bits under which the gate is to be asked (server/command/admission.h).
  uint32_t gating_states = 0;
  // AclCategory bits, those that follow from the flags included.
  uint32_t acl = 0;
  // Number of words of a request, this command's own included; the least number if negative.
  int32_t arity = 0;
  // Dense from 0, subcommands included: an index for bit maps.
  uint32_t id = 0;
  const CommandRow* row = nullptr;
  // The container of a subcommand, or null; and a container's subcommands. They are the set's: no
  // server counts their calls.
  const Command* parent = nullptr;
  std::vector<const Command*> subcommands;
  // Lower case; "client|list" for a subcommand.
  std::string full_name;
  // Lower case, the command's own word.
  std::string name;
  // The positions of keys at fixed places, as COMMAND INFO shows: 0 0 0 without such.
  int32_t first_key = 0;
  int32_t last_key = 0;
  int32_t key_step = 0;
  // CommandExtras::element.
  int32_t element = 0;
  // Its options that the release that is emulated does not have; null when there are none.
  const LaterOptions* later_options = nullptr;

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  bool is_container() const { return !subcommands.empty(); }
  bool accepts_word_count(size_t words) const {
    const auto count = static_cast<int64_t>(words);
    return arity >= 0 ? count == arity : count >= -static_cast<int64_t>(arity);
  }
  // Whether a request may name keys at all.
  bool has_keys() const;
};

// A command of a set, or, with its figures, of a server.
struct Command : CommandFacts {
  Command() = default;
  // With figures that begin anew.
  explicit Command(const CommandFacts& facts) : CommandFacts(facts) {}

  CommandStats stats;
};

// Which of a set's commands a request's first word names, in any case: an open-addressing table.
class CommandNames {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Names the commands anew: each `commands[i]` answers to `words[commands[i]->id]`, lower case.
  // Both must stay as they are while find() is called.
  void rebuild(std::span<const Command* const> commands, std::span<const std::string> words);
  // The same when the commands before `first` have been named already, by the same words: costs a
  // step for each of the others, unless there must be more room.
  void extend(std::span<const Command* const> commands, size_t first,
              std::span<const std::string> words);

  // The command's id, or kNone.
  uint32_t find(std::string_view name) const {
    const Word head = head_of(name);
    const Word tail = tail_of(name);
    for (size_t at = slot_of(head, tail, name.size());; at = (at + 1) & slot_mask_) {
      const uint16_t id = slots_[at];
      if (id == kEmpty) return kNone;
      const Name& known = known_[id];
      if ((head & known.head_mask) == known.head && (tail & known.tail_mask) == known.tail &&
          known.size == name.size() && (name.size() <= 2 * sizeof(Word) || is_named(id, name))) {
        return id;
      }
    }
  }

 private:
  using Word = uint64_t;

  // A name's first and last eight bytes, with the case bit of letters masked out; all bytes of
  // names up to sixteen.
  struct Name {
    Word head = 0;
    Word head_mask = 0;
    Word tail = 0;
    Word tail_mask = 0;
    uint32_t size = 0;
  };

  // The first eight bytes, fewer with zeros after them.
  static Word head_of(std::string_view name) {
    const char* const bytes = name.data();
    const size_t size = name.size();
    if (size >= sizeof(Word)) return load<Word>(bytes);
    if (size >= sizeof(uint32_t)) {
      return load<uint32_t>(bytes) | Word{load<uint32_t>(bytes + size - 4)} << (8 * (size - 4));
    }
    if (size == 0) return 0;
    return Word{load<uint8_t>(bytes)} | Word{load<uint8_t>(bytes + size / 2)} << (8 * (size / 2)) |
           Word{load<uint8_t>(bytes + size - 1)} << (8 * (size - 1));
  }
  // The last eight bytes of names that are longer than that, else zero.
  static Word tail_of(std::string_view name) {
    return name.size() > sizeof(Word) ? load<Word>(name.data() + name.size() - sizeof(Word)) : 0;
  }
  template <typename Unsigned>
  static Unsigned load(const char* bytes) {
    Unsigned value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  size_t slot_of(Word head, Word tail, size_t size) const {
    constexpr Word kCaseBits = 0x2020202020202020;
    constexpr Word kMultiplier = 0x9E3779B97F4A7C15;
    const Word mixed = ((head | kCaseBits) ^ ((tail | kCaseBits) << 7) ^ size) * kMultiplier;
    return static_cast<size_t>(mixed >> slot_shift_);
  }
  // For names longer than the two words.
  bool is_named(uint32_t id, std::string_view name) const;
  void insert(std::string_view word, uint32_t id);

  std::vector<Name> known_;  // by id
  // Ids, or kEmpty; a power of two of them, most of them empty. What follows from an id need not
  // wait for the name to be compared.
  static constexpr uint16_t kEmpty = UINT16_MAX;
  std::vector<uint16_t> slots_;
  size_t slot_mask_ = 0;
  unsigned slot_shift_ = 0;
  std::span<const std::string> words_;  // by id
};

class CommandSet {
 public:
  // Whether a set has a command, or "command|subcommand", lower case.
  using Choice = bool (*)(std::string_view full_name);

  // The commands of a release, as it has them.
  explicit CommandSet(const Edition& edition = Edition());
  ~CommandSet();
  CommandSet(const CommandSet&) = delete;
  CommandSet& operator=(const CommandSet&) = delete;

  const Edition& edition() const { return edition_; }

  // Adds commands and their subcommands, those that the edition has; with `choice` only those for
  // which it returns true. The rows must outlive the set. Two rows of one name, or a malformed
  // syntax line, are a programmer's mistake. Linear in the number of commands.
  void add(std::span<const CommandRow> rows, Choice choice = nullptr);

  // Commands in the order they were added, without subcommands. A set that emulates another server
  // does not list Latchkey's own commands (is_own_command); named() has those, too.
  const std::vector<const Command*>& commands() const { return commands_; }
  const std::vector<const Command*>& named() const { return named_; }
  // Every command and subcommand, by id.
  const std::vector<std::unique_ptr<Command>>& all() const { return all_; }
  const CommandNames& names() const { return names_; }
  // By id: the names, lower case.
  const std::vector<std::string>& words() const { return words_; }
  // The replies of COMMAND and COMMAND DOCS about commands().
  CommandDescriptions& descriptions() const { return descriptions_; }

 private:
  Command* add_command(const CommandRow& row, Command* parent);
  void apply_syntax(Command* command);

  const Edition edition_;
  std::vector<const Command*> commands_;
  std::vector<const Command*> named_;
  std::vector<std::unique_ptr<const LaterOptions>> later_options_;
  std::vector<std::unique_ptr<Command>> all_;
  std::vector<std::string> words_;
  CommandNames names_;
  mutable CommandDescriptions descriptions_{*this};
};

class CommandTable {
 public:
  CommandTable();
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;

  // The release whose commands these are.
  const Edition& edition() const { return set_->edition(); }

  // Takes the commands of a set that is shared with other servers. REQUIRES: none were added, used
  // or renamed.
  void share(std::shared_ptr<const CommandSet> set);
  // Adds commands to a set of the table's own (CommandSet::add). REQUIRES: share() was not called,
  // and no command was renamed.
  void add(std::span<const CommandRow> rows);

  // The command of that name, in any case, or null.
  Command* find(std::string_view name) const {
    const uint32_t id = names_->find(name);
    return id == CommandNames::kNone ? nullptr : own(id);
  }

  // The container's subcommand of that name, in any case, or null. Linear in the number of
  // subcommands.
  Command* find_subcommand(const Command& container, std::string_view name) const;

  // The command that the request's first words name: the subcommand if there is one, the container
  // if its subcommand is not given, null if either name is unknown.
  Command* find_request(Arguments words) const;

  // The command of a full name, "get" or "client|list", or null.
  Command* find_full_name(std::string_view full_name) const;

  // Makes a command answer to another name only, or to none if `new_name` is empty (the directive
  // rename-command). False when there is no command `name` or `new_name` is taken. Linear in the
  // number of commands.
  bool rename(std::string_view name, std::string_view new_name);

  // Applies the directives rename-command. The error is that of the first one that cannot be
  // applied.
  base::Result<void, ConfigError> rename(const std::vector<DeferredDirective>& directives);

  // Commands in the order they were added, without subcommands; those renamed to nothing are left
  // out. They are the set's, without figures.
  const std::vector<const Command*>& commands() const {
    return renaming_ != nullptr ? renaming_->commands : set_->commands();
  }

  // The replies of COMMAND and COMMAND DOCS about all of commands().
  void write_infos(resp::ReplyBuilder& reply) const {
    set_->descriptions().write_infos(commands(), reply);
  }
  void write_docs(resp::ReplyBuilder& reply) const {
    set_->descriptions().write_docs(commands(), reply);
  }

  // The names that commands of commands() answer to, in lower case.
  std::vector<std::string_view> names() const;

  // Every command and subcommand, by id. They are the set's, without figures.
  const std::vector<std::unique_ptr<Command>>& all() const { return set_->all(); }

  // The commands that were ever looked up, by id, with their figures; null: never.
  const std::vector<std::unique_ptr<Command>>& used() const { return used_; }

  void reset_stats();

 private:
  // Of a table whose commands do not all answer to the names they came with.
  struct Renaming {
    std::vector<const Command*> commands;
    std::vector<const Command*> named;
    std::vector<std::string> words;  // by id: what each answers to
    CommandNames names;
  };

  Command* own(uint32_t id) const {
    Command* const command = used_[id].get();
    return command != nullptr ? command : begin_use(id);
  }
  Command* begin_use(uint32_t id) const;

  std::shared_ptr<CommandSet> own_set_;  // null after share()
  std::shared_ptr<const CommandSet> set_;
  std::unique_ptr<Renaming> renaming_;
  const CommandNames* names_;
  mutable std::vector<std::unique_ptr<Command>> used_;
};

// Fills `out` with the keys of a request of `command`, which must have its arity, and what happens
// to each. False when the request is malformed, or names no key though the command needs one.
bool get_keys(const Command& command, Arguments words, std::vector<KeyReference>* out);

// Names as replies show them, in the order in which they are listed; each is a single bit.
struct BitName {
  uint32_t bit;
  std::string_view name;
};
std::span<const BitName> command_flag_names();
std::span<const BitName> acl_category_names();
std::span<const BitName> key_flag_names();
std::string_view group_name(Group group);

// The category of that name, in any case and without '@', or 0.
uint32_t acl_category_named(std::string_view name);

}  // namespace latchkey::server
