#include "sentinel/reply.h"

#include "base/text/number.h"

namespace latchkey::sentinel {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Parse read(Reply* reply, int depth);
  size_t position() const { return position_; }
  size_t wanted() const { return wanted_; }

 private:
  Parse read_line(std::string_view* line);
  Parse read_bulk(int64_t size, Reply* reply);
  Parse read_array(int64_t size, Reply* reply, int depth);

  std::string_view bytes_;
  size_t position_ = 0;
  size_t wanted_ = 0;
};

Parse Reader::read_line(std::string_view* line) {
  constexpr size_t kLongestLine = size_t{64} << 10;
  const size_t end = bytes_.find("\r\n", position_);
  if (end == std::string_view::npos)
    return bytes_.size() - position_ > kLongestLine ? Parse::kMalformed : Parse::kIncomplete;
  *line = bytes_.substr(position_, end - position_);
  position_ = end + 2;
  return Parse::kDone;
}

Parse Reader::read_bulk(int64_t size, Reply* reply) {
  if (size == -1) {
    reply->type = Reply::Type::kNull;
    return Parse::kDone;
  }
  if (size < 0 || static_cast<uint64_t>(size) > kLongestReply) return Parse::kMalformed;
  const auto length = static_cast<size_t>(size);
  if (bytes_.size() - position_ < length + 2) {
    wanted_ = position_ + length + 2;
    return Parse::kIncomplete;
  }
  if (bytes_.substr(position_ + length, 2) != "\r\n") return Parse::kMalformed;
  reply->type = Reply::Type::kBulk;
  reply->text = bytes_.substr(position_, length);
  position_ += length + 2;
  return Parse::kDone;
}

Parse Reader::read_array(int64_t size, Reply* reply, int depth) {
  if (size == -1) {
    reply->type = Reply::Type::kNull;
    return Parse::kDone;
  }
  if (size < 0 || static_cast<uint64_t>(size) > kMaxElements || depth == kDeepestReply)
    return Parse::kMalformed;
  reply->type = Reply::Type::kArray;
  for (int64_t i = 0; i < size; ++i) {
    const Parse result = read(&reply->elements.emplace_back(), depth + 1);
    if (result != Parse::kDone) return result;
  }
  return Parse::kDone;
}

Parse Reader::read(Reply* reply, int depth) {
  if (position_ == bytes_.size()) return Parse::kIncomplete;
  const char type = bytes_[position_];
  if (std::string_view("+-:$*").find(type) == std::string_view::npos) return Parse::kMalformed;
  ++position_;
  std::string_view line;
  if (const Parse result = read_line(&line); result != Parse::kDone) return result;
  if (type == '+' || type == '-') {
    reply->type = type == '+' ? Reply::Type::kStatus : Reply::Type::kError;
    reply->text = line;
    return Parse::kDone;
  }
  int64_t number = 0;
  if (!base::parse_int64(line, &number)) return Parse::kMalformed;
  if (type == '$') return read_bulk(number, reply);
  if (type == '*') return read_array(number, reply, depth);
  reply->type = Reply::Type::kInteger;
  reply->integer = number;
  return Parse::kDone;
}

}  // namespace

Parse parse_reply(std::string_view bytes, Reply* reply, size_t* used, size_t* wanted) {
  Reader reader(bytes);
  *reply = Reply();
  const Parse result = reader.read(reply, 1);
  *used = result == Parse::kDone ? reader.position() : 0;
  *wanted = reader.wanted();
  if (result == Parse::kIncomplete && bytes.size() > kLongestReply) return Parse::kMalformed;
  return result;
}

}  // namespace latchkey::sentinel
