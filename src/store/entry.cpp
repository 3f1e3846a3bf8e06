#include "store/entry.h"

#include "base/text/number.h"

namespace latchkey::store {

std::string_view type_name(Type type) {
  switch (type) {
    case Type::kString:
      return "string";
    case Type::kList:
      return "list";
    case Type::kSet:
      return "set";
    case Type::kSortedSet:
      return "zset";
    case Type::kHash:
      return "hash";
    case Type::kStream:
      return "stream";
    case Type::kVectorSet:
      return "vectorset";
    case Type::kArray:
      return "array";
    case Type::kJson:
      return "ReJSON-RL";
    case Type::kTimeSeries:
      return "TSDB-TYPE";
    case Type::kBloomFilter:
      return "MBbloom--";
    case Type::kCuckooFilter:
      return "MBbloomCF";
    case Type::kCountMinSketch:
      return "CMSk-TYPE";
    case Type::kTopK:
      return "TopK-TYPE";
    case Type::kTDigest:
      return "TDIS-TYPE";
  }
  return "unknown";
}

std::string_view Entry::string(char* scratch) const {
  if (is_integer()) return {scratch, base::format_int64(integer(), scratch)};
  return text();
}

size_t Entry::string_size() const {
  char scratch[base::kMaxInt64Text];
  return string(scratch).size();
}

std::string_view Entry::encoding_name() const {
  // The reference keeps strings of up to 44 bytes with their header in one allocation and calls
  // that "embstr".
  constexpr size_t kLongestEmbedded = 44;
  switch (form()) {
    case Form::kInteger:
      return "int";
    case Form::kInline:
      return (flags_ & kChangedInPlace) == 0 && text().size() <= kLongestEmbedded ? "embstr"
                                                                                  : "raw";
    case Form::kBlob:
      return "raw";
    case Form::kValue:
      return value()->encoding_name();
    case Form::kPacked:
      return packed().is_intset ? "intset" : "listpack";
  }
  return "unknown";
}

size_t Entry::memory_usage() const {
  size_t bytes = key_offset() + key_size() + inline_size();
  switch (form()) {
    case Form::kInteger:
    case Form::kInline:
    case Form::kPacked:
      break;
    case Form::kBlob:
      bytes += blob()->memory_usage();
      break;
    case Form::kValue:
      bytes += value()->memory_usage();
      break;
  }
  return bytes;
}

}  // namespace latchkey::store
