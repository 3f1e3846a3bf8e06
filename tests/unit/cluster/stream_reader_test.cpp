#include "cluster/slot_migration/stream_reader.h"

#include <string>

#include "commands/groups.h"
#include "resp/request_encoder.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using cluster::StreamReader;

struct Reading {
  // Offers all that was not consumed.
  StreamReader::Progress read(size_t most = StreamReader::kPiece) {
    const StreamReader::Progress progress =
        reader.read(bytes, most, [this](auto words, size_t size) {
          read_bytes += size;
          if (!words.empty()) ++requests;
          return words.empty() || words[0] != "STOP";
        });
    bytes.erase(0, progress.used);
    return progress;
  }

  ServerFixture server{{commands::string_rows()}};
  StreamReader reader{server.server};
  std::string bytes;
  size_t requests = 0;
  size_t read_bytes = 0;
};

}  // namespace

TEST_CASE("Requests run in pieces, and what is left is said to be there", "[stream-reader]") {
  Reading scene;
  const std::string request = resp::encode_request({"SET", "a", "1"});
  for (int i = 0; i < 5; ++i) scene.bytes += request;
  CHECK(scene.read(2 * request.size()).has_more);
  CHECK(scene.requests == 2);
  // A piece ends with the request that reaches its size.
  CHECK(scene.read(request.size() + 1).has_more);
  CHECK(scene.requests == 4);
  CHECK_FALSE(scene.read().has_more);
  CHECK(scene.requests == 5);
  CHECK(scene.read_bytes == 5 * request.size());
  CHECK(scene.read().used == 0);
}

TEST_CASE("Lines without words between requests are consumed", "[stream-reader]") {
  Reading scene;
  const std::string request = resp::encode_request({"PING"});
  scene.bytes = "\n\r\n" + request + "\n" + request + "\r\n\n";
  const size_t size = scene.bytes.size();
  const StreamReader::Progress progress = scene.read();
  CHECK(progress.used == size);
  CHECK_FALSE(progress.has_more);
  CHECK(scene.requests == 2);
}

TEST_CASE("A request that has not come whole waits, however large it is", "[stream-reader]") {
  Reading scene;
  const std::string large = resp::encode_request({"SET", "a", std::string(5'000'000, 'x')});
  scene.bytes = large.substr(0, large.size() - 1);
  const StreamReader::Progress progress = scene.read();
  CHECK(progress.used == 0);
  CHECK_FALSE(progress.has_more);
  CHECK_FALSE(progress.is_far_ahead);
  scene.bytes.push_back(large.back());
  scene.read();
  CHECK(scene.requests == 1);
}

TEST_CASE("The socket is not read while more waits than should", "[stream-reader]") {
  Reading scene;
  const std::string request = resp::encode_request({"SET", "a", std::string(1'000'000, 'x')});
  for (int i = 0; i < 6; ++i) scene.bytes += request;
  CHECK(scene.read().is_far_ahead);
  const StreamReader::Progress progress = scene.read();
  CHECK(progress.has_more);
  CHECK_FALSE(progress.is_far_ahead);
  CHECK(scene.requests == 2);
}

TEST_CASE("Nothing runs behind a request that stops, or what is no request", "[stream-reader]") {
  Reading scene;
  scene.bytes = resp::encode_request({"STOP"}) + resp::encode_request({"PING"});
  CHECK(scene.read().has_more);
  CHECK(scene.requests == 1);
  scene.bytes += "*1\r\n:5\r\n";
  CHECK(scene.read().error == "Protocol error: expected '$', got ':'");
  CHECK(scene.requests == 2);
}

TEST_CASE("Nothing is to be read while a dataset is loaded or a script is busy",
          "[stream-reader]") {
  Reading scene;
  CHECK_FALSE(scene.reader.must_wait());
  for (const uint32_t state : {server::kStateBusy, server::kStateLoading}) {
    scene.server.server.set_state(state, true);
    CHECK(scene.reader.must_wait());
    scene.server.server.set_state(state, false);
  }
}

}  // namespace latchkey::tests
