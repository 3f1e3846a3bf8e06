#include "server/client/pubsub.h"

#include <string>

#include "commands/groups.h"
#include "unit/catch.h"
#include "unit/server_fixture.h"

namespace latchkey::tests {

namespace {

using server::PubSub;
using server::TopicKind;

struct PubSubServer : ServerFixture {
  explicit PubSubServer(std::string_view settings = {})
      : ServerFixture({commands::pubsub_rows()}, settings) {}
  PubSub& pubsub() { return server.pubsub(); }
};

}  // namespace

TEST_CASE("a message reaches those who listen to its channel, and nobody else", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  TestClient ben(server);
  TestClient cleo(server, 3);
  server.pubsub().subscribe(*anna, TopicKind::kChannel, "news");
  server.pubsub().subscribe(*ben, TopicKind::kChannel, "weather");
  server.pubsub().subscribe(*cleo, TopicKind::kChannel, "news");
  CHECK(server.pubsub().publish("news", "rain") == 2);
  CHECK(anna.take_output() == bulks({"message", "news", "rain"}));
  CHECK(ben.take_output().empty());
  CHECK(cleo.take_output() == ">3\r\n" + bulk("message") + bulk("news") + bulk("rain"));
  CHECK(server.pubsub().publish("sport", "goal") == 0);
}

TEST_CASE("a client receives a message once for each subscription that it matches", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  server.pubsub().subscribe(*anna, TopicKind::kPattern, "n*");
  server.pubsub().subscribe(*anna, TopicKind::kChannel, "news");
  server.pubsub().subscribe(*anna, TopicKind::kChannel, "news");
  CHECK(server.pubsub().publish("news", "rain") == 2);
  CHECK(anna.take_output() ==
        bulks({"message", "news", "rain"}) + bulks({"pmessage", "n*", "news", "rain"}));
}

TEST_CASE("shard channels are a world of their own", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  server.pubsub().subscribe(*anna, TopicKind::kShardChannel, "news");
  CHECK(server.pubsub().publish("news", "x") == 0);
  CHECK(server.pubsub().publish_to_shard("news", "y") == 1);
  CHECK(anna.take_output() == bulks({"smessage", "news", "y"}));
}

TEST_CASE("those who stay still receive when others leave", "[pubsub]") {
  PubSubServer server;
  TestClient first(server);
  TestClient second(server);
  TestClient third(server);
  for (TestClient* client : {&first, &second, &third})
    server.pubsub().subscribe(**client, TopicKind::kChannel, "news");
  server.pubsub().unsubscribe(*first, TopicKind::kChannel, "news");
  CHECK(server.pubsub().publish("news", "1") == 2);
  server.pubsub().unsubscribe(*third, TopicKind::kChannel, "news");
  CHECK(server.pubsub().publish("news", "2") == 1);
  CHECK(first.take_output().empty());
  CHECK(second.take_output() == bulks({"message", "news", "1"}) + bulks({"message", "news", "2"}));
  CHECK(third.take_output() == bulks({"message", "news", "1"}));
}

TEST_CASE("a topic is gone with the last who listens to it", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  TestClient ben(server);
  server.pubsub().subscribe(*anna, TopicKind::kChannel, "news");
  server.pubsub().subscribe(*ben, TopicKind::kChannel, "news");
  server.pubsub().subscribe(*ben, TopicKind::kPattern, "n*");
  server.pubsub().subscribe(*ben, TopicKind::kShardChannel, "s");
  CHECK(server.pubsub().listeners(TopicKind::kChannel, "news") == 2);
  ben->close();
  CHECK(server.pubsub().listeners(TopicKind::kChannel, "news") == 1);
  CHECK(server.pubsub().topics(TopicKind::kPattern) == 0);
  CHECK(server.pubsub().topics(TopicKind::kShardChannel) == 0);
  server.pubsub().unsubscribe(*anna, TopicKind::kChannel, "news");
  CHECK(server.pubsub().topics(TopicKind::kChannel) == 0);
  CHECK_FALSE(anna->has(server::kClientSubscribed));
}

TEST_CASE("leaving what one does not listen to changes nothing", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  TestClient ben(server);
  server.pubsub().subscribe(*anna, TopicKind::kChannel, "news");
  server.pubsub().subscribe(*ben, TopicKind::kChannel, "weather");
  server.pubsub().unsubscribe(*ben, TopicKind::kChannel, "news");
  server.pubsub().unsubscribe(*ben, TopicKind::kPattern, "weather");
  CHECK(PubSub::count(*ben, TopicKind::kChannel) == 1);
  CHECK(server.pubsub().listeners(TopicKind::kChannel, "news") == 1);
}

TEST_CASE("long messages arrive whole at several clients of both protocols", "[pubsub]") {
  PubSubServer server;
  TestClient anna(server);
  TestClient cleo(server, 3);
  TestClient publisher(server);
  for (TestClient* client : {&anna, &cleo}) {
    server.pubsub().subscribe(**client, TopicKind::kChannel, "news");
    server.pubsub().subscribe(**client, TopicKind::kPattern, "*s");
  }
  const std::string message(100'000, 'x');
  CHECK(publisher.run_words({"PUBLISH", "news", message}) == integer(4));
  CHECK(anna.take_output() ==
        bulks({"message", "news", message}) + bulks({"pmessage", "*s", "news", message}));
  CHECK(cleo.take_output() == ">3\r\n" + bulk("message") + bulk("news") + bulk(message) + ">4\r\n" +
                                  bulk("pmessage") + bulk("*s") + bulk("news") + bulk(message));
}

TEST_CASE("a client over its limit receives no more and is closed", "[pubsub]") {
  PubSubServer server("client-output-buffer-limit pubsub 20000 0 0\n");
  TestClient slow(server);
  TestClient publisher(server);
  slow.run("SUBSCRIBE news");
  const std::string message(12'000, 'x');
  for (int i = 0; i < 3; ++i) publisher.run_words({"PUBLISH", "news", message});
  const size_t held = slow->pending_output();
  publisher.run_words({"PUBLISH", "news", message});
  CHECK(slow->pending_output() == held);
  CHECK(slow->has(server::kClientOverLimit));
}

}  // namespace latchkey::tests
