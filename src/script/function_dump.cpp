#include "script/function_dump.h"

#include "persist/rdb/dump_payload.h"
#include "persist/rdb/rdb_format.h"
#include "persist/rdb/rdb_primitives.h"

namespace latchkey::script {

using namespace persist;

std::string dump_functions(const server::FunctionLibraries& libraries, bool compress, int version) {
  std::string dump;
  StringSink sink(dump);
  sink.enable_checksum();
  RdbWriter writer(sink, compress, version);
  libraries.for_each_code([&](std::string_view code) {
    writer.opcode(RdbOpcode::kFunction);
    writer.string(code);
  });
  write_dump_footer(sink, writer, version);
  return dump;
}

base::Result<std::vector<std::string>> read_function_dump(std::string_view dump, bool skip_checksum,
                                                          int newest) {
  if (!is_intact_dump(dump, skip_checksum, newest))
    return base::fail("ERR DUMP payload version or checksum are wrong");
  const std::string_view body = dump_body(dump);
  MemorySource source(body);
  RdbReader reader(source);
  std::vector<std::string> codes;
  while (source.offset() < body.size()) {
    uint8_t opcode = 0;
    std::string_view code;
    if (!reader.byte(&opcode) || opcode != static_cast<uint8_t>(RdbOpcode::kFunction)) {
      return base::fail(opcode == static_cast<uint8_t>(RdbOpcode::kFunctionPreGa)
                            ? "ERR Pre-GA function format not supported"
                            : "ERR given type is not a function");
    }
    if (!reader.string(&code)) return base::fail("ERR Failed loading library payload");
    codes.emplace_back(code);
  }
  return codes;
}

}  // namespace latchkey::script
