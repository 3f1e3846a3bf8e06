// The constants of RDB, the reference's file format: type numbers, opcodes, lengths. Sources: the
// description at https://rdb.fnordig.de/file_format.html, and files that the reference wrote.
//
//     +---------+------+-----+--------------------------------------------------+-----+----------+
//     | "REDIS" | 0012 | aux | for each database: select, sizes, keys ...       | end | checksum |
//     +---------+------+-----+--------------------------------------------------+-----+----------+
//       5         4 digits     key: [deadline] [idle or frequency] type key value              8
//
// The checksum is there from version 5 on.
//
// A length is 1 to 9 bytes, by the two highest bits of the first:
//
//     00 6 bits   |   01 6 bits, 8 bits   |   0x80, 32 bits big endian   |   0x81, 64 bits likewise
//     11 6 bits: no length, but a string in one of the forms of StringForm
#pragma once

#include <cstdint>
#include <string_view>

namespace latchkey::persist {

// The version that is written, and the highest version that is read. Files of version 12 may
// contain values of newer types, which older servers refuse when they come to them: so they can
// still load what does not use the new types. Dumps have the version of their type.
inline constexpr int kRdbVersion = 12;
inline constexpr int kNewestRdbVersion = 13;

// Valkey's own form since 9.0: "VALKEY080" in place of "REDIS0011", and type 22 for hashes with
// deadlines; all else is as in version 11. Read off files that it wrote.
inline constexpr int kValkeyRdbVersion = 80;

// Since when there are listpacks of lists, hashes and sorted sets, a stream's counters, and
// functions; listpacks of sets, and a consumer's last activity.
inline constexpr int kRdbVersionOfListpacks = 10;
inline constexpr int kRdbVersionOfSetListpacks = 11;

// The layout of a value. Types that are obsolete in current files are still read.
enum class RdbType : uint8_t {
  kString = 0,
  kList = 1,   // strings
  kSet = 2,    // strings
  kZset = 3,   // strings, scores as text
  kHash = 4,   // alternating fields and values
  kZset2 = 5,  // strings, scores as 64 bits
  kModule1 = 6,
  kModule2 = 7,
  kHashZipmap = 9,
  kListZiplist = 10,
  kSetIntset = 11,
  kZsetZiplist = 12,
  kHashZiplist = 13,
  kListQuicklist = 14,  // ziplists
  kStreamListpacks = 15,
  kHashListpack = 16,
  kZsetListpack = 17,
  kListQuicklist2 = 18,  // listpacks and plain elements
  kStreamListpacks2 = 19,
  kSetListpack = 20,
  kStreamListpacks3 = 21,
  kHashMetadataPreGa = 22,  // absolute deadlines, without the earliest one before them; in Valkey's
                            // form: field, value, deadline (64 bits, -1: none)
  kHashListpackExPreGa = 23,
  kHashMetadata = 24,  // the earliest deadline, then alternating deadline, field, value
  kHashListpackEx = 25,
  kStreamListpacks4 = 26,  // with the requests of producers; from version 13 on
};
inline constexpr uint8_t kLastRdbType = 26;

enum class RdbOpcode : uint8_t {
  kSlotImport = 243,  // in Valkey's form (rdb_slot_import.h)
  kSlotInfo = 244,
  kFunction = 245,
  kFunctionPreGa = 246,
  kModuleAux = 247,
  kIdle = 248,
  kFrequency = 249,
  kAux = 250,
  kResizeDb = 251,
  kDeadlineMs = 252,
  kDeadline = 253,
  kSelectDb = 254,
  kEnd = 255,
};

// The value of the six bits behind 11.
enum class StringForm : uint8_t { kInt8 = 0, kInt16 = 1, kInt32 = 2, kLzf = 3 };

// The parts of a module's value or auxiliary data.
enum class ModuleOpcode : uint8_t {
  kEnd = 0,
  kSigned = 1,
  kUnsigned = 2,
  kFloat = 3,
  kDouble = 4,
  kString = 5,
};

// The container of a node of kListQuicklist2.
enum class NodeContainer : uint8_t { kPlain = 1, kPacked = 2 };

// Whether the byte is a known type, including those of modules.
constexpr bool is_rdb_type(uint8_t byte) {
  return byte <= kLastRdbType && byte != 8;
}

// The names that redis-check-rdb shows; empty for unknown numbers.
std::string_view rdb_type_name(uint8_t type);

}  // namespace latchkey::persist
