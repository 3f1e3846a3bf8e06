// Requests that come together: what is brought near before the first of them runs may be gone, or
// be something else, when the last one does.
#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

std::string fill_requests(int count) {
  std::string requests;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    requests += "HSET hash field:" + number + " " + number + "\r\n";
    requests += "SADD set member:" + number + "\r\n";
    requests += "ZADD ranking " + number + " member:" + number + "\r\n";
  }
  return requests;
}

}  // namespace

TEST_CASE("Elements are looked up together whatever they are kept in", "[pipeline]") {
  ServerFixture server({commands::hash_rows(), commands::set_rows(), commands::sorted_set_rows()});
  TestClient client(server);
  const int count = GENERATE(5, 3000);
  std::string expected;
  for (int i = 0; i < 3 * count; ++i) expected += integer(1);
  CHECK(client.send(fill_requests(count)) == expected);

  std::string requests;
  expected.clear();
  for (int i = 0; i < 40; ++i) {
    const int place = i * 7 % count;
    const std::string number = std::to_string(place);
    requests += "HGET hash field:" + number + "\r\nSISMEMBER set member:" + number +
                "\r\nZRANK ranking member:" + number + "\r\nZINCRBY ranking 0 member:" + number +
                "\r\nZRANK ranking nobody\r\nHGET nothing field\r\nHGET hash\r\n";
    expected += bulk(number) + integer(1) + integer(place) + bulk(number) + std::string(kNull) +
                std::string(kNull) + error("ERR wrong number of arguments for 'hget' command");
  }
  CHECK(client.send(requests) == expected);
}

TEST_CASE("A key may go or change its type between requests that came together", "[pipeline]") {
  ServerFixture server({commands::hash_rows(), commands::set_rows(), commands::sorted_set_rows(),
                        commands::key_rows(), commands::string_rows()});
  TestClient client(server);
  client.send(fill_requests(1000));
  CHECK(
      client.send("HGET hash field:7\r\nDEL hash\r\nHGET hash field:7\r\nHSET hash field:7 new\r\n"
                  "HGET hash field:7\r\n") ==
      bulk("7") + integer(1) + std::string(kNull) + integer(1) + bulk("new"));
  CHECK(client.send("ZSCORE ranking member:9\r\nSET ranking text\r\nZSCORE ranking member:9\r\n"
                    "ZADD ranking 1 a\r\n") ==
        bulk("9") + std::string(kOk) + std::string(kWrongType) + std::string(kWrongType));
  CHECK(client.send("SISMEMBER ranking a\r\nSISMEMBER set member:1\r\nDEL ranking set\r\n"
                    "SADD ranking a\r\nSISMEMBER ranking a\r\nSISMEMBER set member:1\r\n") ==
        std::string(kWrongType) + integer(1) + integer(2) + integer(1) + integer(1) + integer(0));
}

}  // namespace latchkey::tests
