#include "server/client/output_limits.h"

#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

using namespace latchkey;
using tests::ServerFixture;
using tests::TestClient;

TEST_CASE("A reply that its client will never get is not made to its end") {
  constexpr size_t kLimit = 100'000;
  ServerFixture server(
      {commands::hash_rows(), commands::hash_random_rows(), commands::set_rows(),
       commands::set_random_rows(), commands::sorted_set_rows(), commands::sorted_set_pop_rows(),
       commands::scan_rows(), commands::string_rows(), commands::config_rows()},
      "client-output-buffer-limit normal 100000 0 0\n");
  TestClient client(server);
  const std::string name(100, 'n');
  const auto size_of = [&](std::string_view request) { return client.run(request).size(); };
  client.run("HSET h " + name + " value");
  client.run("SADD s " + name);
  client.run("ZADD z 1 " + name);
  for (int i = 0; i < 2000; ++i) client.run("SET " + name + std::to_string(i) + " value");

  for (const std::string_view request : {"HRANDFIELD h -999999999", "SRANDMEMBER s -999999999",
                                         "ZRANDMEMBER z -999999999", "KEYS *"}) {
    INFO(request);
    const size_t bytes = size_of(request);
    // The room kept for a length that is not known yet counts until it is.
    CHECK(bytes > kLimit - 100);
    CHECK(bytes < kLimit + 1000);
  }
  client.run_words({"CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0"});
  CHECK(size_of("KEYS *") > 2 * kLimit);
}

TEST_CASE("A reply that names one large value again and again is not made to its end either") {
  constexpr size_t kLimit = 100'000;
  constexpr size_t kValue = 5000;
  ServerFixture server({commands::hash_rows(), commands::string_batch_rows(),
                        commands::string_rows(), commands::list_rows(), commands::sort_rows(),
                        commands::stream_rows(), commands::stream_read_rows()},
                       "client-output-buffer-limit normal 100000 0 0\n");
  TestClient client(server);
  const std::string value(kValue, 'v');
  client.run("SET k1 " + value);
  client.run("HSET h f " + value);
  client.run("XADD s 1-1 f " + value);
  client.run("RPUSH l 1");

  const auto repeated = [](std::string request, std::string_view word, std::string_view end = "") {
    for (int i = 0; i < 200; ++i) request.append(" ").append(word);
    return request.append(end);
  };
  std::string ids;
  for (int i = 0; i < 200; ++i) ids += " 0";
  for (const std::string& request :
       {repeated("MGET", "k1"), repeated("HMGET h", "f"), repeated("XREAD STREAMS", "s", ids),
        repeated("SORT l BY nosort", "GET k*")}) {
    INFO(request.substr(0, 20));
    const size_t bytes = client.run(request).size();
    CHECK(bytes > kLimit - kValue);
    CHECK(bytes < kLimit + 2 * kValue);
  }
}
