#include "resp/reply_builder.h"

#include <algorithm>

#include "base/text/number.h"
#include "resp/request_encoder.h"

namespace latchkey::resp {

void ReplyBuilder::status(std::string_view text) {
  char* start = out_->reserve(text.size() + 3);
  char* out = start;
  *out++ = '+';
  out = std::copy(text.begin(), text.end(), out);
  *out++ = '\r';
  *out++ = '\n';
  out_->commit(static_cast<size_t>(out - start));
}

void ReplyBuilder::error(std::string_view text) {
  ++error_count_;
  last_error_mark_ = out_->mark();
  char* start = out_->reserve(text.size() + 3);
  char* out = start;
  if (text.empty() || text.front() != '-') *out++ = '-';
  out = std::transform(text.begin(), text.end(), out,
                       [](char c) { return c == '\r' || c == '\n' ? ' ' : c; });
  *out++ = '\r';
  *out++ = '\n';
  out_->commit(static_cast<size_t>(out - start));
}

void ReplyBuilder::integer(int64_t value) {
  char* start = out_->reserve(kMaxHeader);
  char* out = start;
  *out++ = ':';
  out += base::format_int64(value, out);
  *out++ = '\r';
  *out++ = '\n';
  out_->commit(static_cast<size_t>(out - start));
}

void ReplyBuilder::boolean(bool value) {
  if (protocol_ == 3) {
    raw(value ? "#t\r\n" : "#f\r\n");
  } else {
    raw(value ? ":1\r\n" : ":0\r\n");
  }
}

void ReplyBuilder::number(double value) {
  char text[base::kMaxDoubleText];
  number(std::string_view(text, uses_17_digits_ ? base::format_double_17_digits(value, text)
                                                : base::format_double(value, text)));
}

void ReplyBuilder::number(std::string_view digits) {
  if (protocol_ == 2) {
    bulk(digits);
    return;
  }
  raw(",");
  raw(digits);
  raw("\r\n");
}

void ReplyBuilder::big_number(std::string_view digits) {
  if (protocol_ == 2) {
    bulk(digits);
    return;
  }
  raw("(");
  raw(digits);
  raw("\r\n");
}

void ReplyBuilder::bulk(std::string_view bytes) {
  char* start = out_->reserve(bulk_room(bytes.size()));
  out_->commit(static_cast<size_t>(put_bulk(start, bytes) - start));
}

void ReplyBuilder::bulk(int64_t value) {
  char text[base::kMaxInt64Text];
  bulk(std::string_view(text, base::format_int64(value, text)));
}

void ReplyBuilder::bulk(base::Blob* blob) {
  if (copies(*blob)) return bulk(blob->view());
  header('$', blob->size());
  out_->append_shared(blob);
  raw("\r\n");
}

void ReplyBuilder::bulk(std::span<const base::BlobRef> blobs) {
  size_t size = 0;
  for (const base::BlobRef& blob : blobs) size += blob.view().size();
  header('$', size);
  for (const base::BlobRef& blob : blobs) raw(blob.get(), blob.view());
  raw("\r\n");
}

void ReplyBuilder::raw(base::Blob* blob, std::string_view part) {
  copies(*blob) ? out_->append(part) : out_->append_shared(blob, part);
}

void ReplyBuilder::verbatim(std::string_view format, std::string_view text) {
  if (protocol_ == 2) {
    bulk(text);
    return;
  }
  header('=', text.size() + format.size() + 1);
  raw(format);
  raw(":");
  raw(text);
  raw("\r\n");
}

void ReplyBuilder::null() {
  raw(protocol_ == 3 ? std::string_view("_\r\n") : std::string_view("$-1\r\n"));
}

void ReplyBuilder::null_array() {
  raw(protocol_ == 3 ? std::string_view("_\r\n") : std::string_view("*-1\r\n"));
}

void ReplyBuilder::header(char type, size_t size) {
  char* start = out_->reserve(kMaxHeader);
  out_->commit(static_cast<size_t>(put_header(start, type, size) - start));
}

ReplyBuilder::Later ReplyBuilder::later() {
  const Later later{out_->mark()};
  out_->reserve(kLaterSize);
  out_->commit(kLaterSize);
  return later;
}

void ReplyBuilder::header_later(Later later, char type, size_t size) {
  char text[kMaxHeader];
  const auto length = static_cast<size_t>(put_header(text, type, size) - text);
  out_->patch(later.mark, kLaterSize, {text, length});
}

}  // namespace latchkey::resp
