#include "testing/reply_text.h"

#include <string>

#include "unit/catch.h"
#include "unit/server_fixture.h"

using latchkey::testing::short_reply;
using namespace latchkey::tests;

TEST_CASE("A reply in short tells its type") {
  CHECK(short_reply("+OK\r\n") == "OK");
  CHECK(short_reply("-ERR no\r\n") == "(error) ERR no");
  CHECK(short_reply(":-7\r\n") == "(integer) -7");
  CHECK(short_reply(bulk("OK")) == "\"OK\"");
  CHECK(short_reply(bulk("")) == "\"\"");
  CHECK(short_reply(bulk("a\"\r\n\x01")) == "\"a\\\"\\r\\n\\x01\"");
  CHECK(short_reply("$-1\r\n") == "(nil)");
  CHECK(short_reply("*-1\r\n") == "(nil)");
  CHECK(short_reply("_\r\n") == "(nil)");
  CHECK(short_reply("*2\r\n:1\r\n:2\r\n") == "(array) 2");
  CHECK(short_reply("%1\r\n:1\r\n:2\r\n") == "(map) 1");
  CHECK(short_reply("~3\r\n") == "(set) 3");
  CHECK(short_reply(">3\r\n") == "(push) 3");
  CHECK(short_reply(",1.5\r\n") == "(double) 1.5");
  CHECK(short_reply("(12345678901234567890\r\n") == "(big number) 12345678901234567890");
  CHECK(short_reply("#t\r\n") == "(true)");
  CHECK(short_reply("#f\r\n") == "(false)");
  CHECK(short_reply("=8\r\ntxt:text\r\n") == "\"text\"");
  CHECK(short_reply("") == "(none)");
}

TEST_CASE("Of a long reply its beginning is shown, and how much is left out") {
  const std::string shown(64, 'x');
  CHECK(short_reply(bulk(std::string(64, 'x'))) == '"' + shown + '"');
  // Only the first bytes of the reply are there.
  const std::string whole = bulk(std::string(1000, 'x'));
  CHECK(short_reply(whole.substr(0, 128)) == '"' + shown + "\"... (936 more bytes)");
  CHECK(short_reply("-" + std::string(500, 'x')) == "(error) " + shown);
}
