// TLS between two sessions in memory, and what contexts make of their settings.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer_pool.h"
#include "tls/context.h"
#include "unit/catch.h"
#include "unit/temporary_directory.h"
#include "unit/tls/certificates.h"

namespace latchkey::tests {

namespace {

using net::TransportLayer;
using State = TransportLayer::State;
using tls::Context;
using tls::Settings;
using Clients = tls::Settings::Clients;

// One authority, and the names of what it has signed; made once, because keys take their time.
const Certificates& certificates() {
  static const std::unique_ptr<Certificates> made = [] {
    auto fresh = std::make_unique<Certificates>();
    fresh->add("server", "the server");
    fresh->add("client", "anna");
    fresh->add("nul", std::string("anna\0x", 6));
    fresh->add("old", "anna", -2 * Certificates::kDay, -Certificates::kDay);
    fresh->add("young", "anna", Certificates::kDay, 2 * Certificates::kDay);
    fresh->add("locked", "anna", -Certificates::kDay, Certificates::kDay, "secret");
    fresh->add("uris", "anna", -Certificates::kDay, Certificates::kDay, "",
               "URI:urn:b,DNS:name.example,URI:urn:a");
    return fresh;
  }();
  return *made;
}

Settings settings_of(const std::string& name) {
  Settings settings;
  settings.cert_file = certificates().path(name + ".crt");
  settings.key_file = certificates().path(name + ".key");
  settings.ca_cert_file = certificates().path("ca.crt");
  return settings;
}

std::unique_ptr<Context> context_of(const Settings& settings) {
  auto context = Context::make(settings);
  INFO((context ? "" : context.error()));
  REQUIRE(context);
  return *std::move(context);
}

// What the log says of settings that no context can be made from.
std::string error_of(const Settings& settings) {
  const auto context = Context::make(settings);
  REQUIRE_FALSE(context);
  return context.error();
}

// Two ends, and the bytes that go between them, in pieces of some size.
struct Pair {
  base::BufferPool pool;
  std::unique_ptr<TransportLayer> server;
  std::unique_ptr<TransportLayer> client;
  std::string at_server;  // what came out
  std::string at_client;

  Pair(const Context& accepts, const Context& connects)
      : server(accepts.accept(pool)), client(connects.connect(pool, "server.example")) {
    server->begin();
    client->begin();
  }
  // Carries bytes both ways until there are none.
  void talk(size_t piece = 100'000) {
    while (!server->wire().empty() || !client->wire().empty()) {
      carry(*client, *server, piece, &at_server);
      carry(*server, *client, piece, &at_client);
    }
  }
  static void carry(TransportLayer& from, TransportLayer& to, size_t piece, std::string* out) {
    const std::string bytes = take(from);
    for (size_t at = 0; at < bytes.size(); at += piece) give(to, bytes.substr(at, piece), out);
  }
  static std::string take(TransportLayer& from) {
    std::string bytes = from.wire().copy_since(0);
    from.wire().clear();
    return bytes;
  }
  static void give(TransportLayer& to, std::string_view bytes, std::string* out) {
    to.receive(bytes);
    char room[1000];
    for (size_t size = 0; (size = to.read(room, sizeof room)) > 0;) out->append(room, size);
  }
};

}  // namespace

TEST_CASE("What one end writes the other reads, in whatever pieces it comes", "[tls]") {
  const auto context = context_of(settings_of("server"));
  const auto clients = context_of(settings_of("client"));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1500}, size_t{100'000}}) {
    Pair pair(*context, *clients);
    CHECK(pair.server->state() == State::kHandshake);
    pair.talk(piece);
    REQUIRE(pair.server->state() == State::kOpen);
    REQUIRE(pair.client->state() == State::kOpen);
    std::string long_text(50'000, 'x');
    for (size_t i = 0; i < long_text.size(); ++i) long_text[i] = static_cast<char>(i * 7 % 251);
    pair.client->write("PING\r\n");
    pair.server->write(long_text);
    pair.talk(piece);
    CHECK(pair.at_server == "PING\r\n");
    CHECK(pair.at_client == long_text);
  }
}

TEST_CASE("Of N bytes come at most N and kMaxHeldBytes more", "[tls]") {
  const auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  pair.talk();
  pair.client->write(std::string(TransportLayer::kMaxHeldBytes, 'x'));
  const std::string record = Pair::take(*pair.client);
  // All but the last byte: nothing can be known of the record.
  Pair::give(*pair.server, std::string_view(record).substr(0, record.size() - 1), &pair.at_server);
  CHECK(pair.at_server.empty());
  Pair::give(*pair.server, std::string_view(record).substr(record.size() - 1), &pair.at_server);
  CHECK(pair.at_server.size() <= 1 + TransportLayer::kMaxHeldBytes);
  CHECK(pair.at_server == std::string(TransportLayer::kMaxHeldBytes, 'x'));
}

// A client's kernel may wait for this message before it sends the request.
TEST_CASE("The ticket of a session of TLS 1.3 comes at the end of the handshake", "[tls]") {
  Settings settings = settings_of("server");
  const auto clients = context_of(settings_of("client"));
  for (const bool caching : {true, false}) {
    settings.session_caching = caching;
    const auto context = context_of(settings);
    Pair pair(*context, *clients);
    for (int i = 0; pair.server->state() == State::kHandshake && i < 10; ++i) {
      Pair::carry(*pair.server, *pair.client, 100'000, &pair.at_client);
      Pair::carry(*pair.client, *pair.server, 100'000, &pair.at_server);
    }
    REQUIRE(pair.server->state() == State::kOpen);
    CHECK(pair.server->wire().empty() == !caching);
  }
}

TEST_CASE("A session goes on when its context is gone", "[tls]") {
  auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  pair.talk();
  context.reset();
  pair.client->write("still here");
  pair.talk();
  CHECK(pair.at_server == "still here");
}

TEST_CASE("The end of one side is told to the other, which may still write", "[tls]") {
  const auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  pair.talk();
  pair.client->write("last");
  pair.client->end();
  pair.talk();
  CHECK(pair.at_server == "last");
  CHECK(pair.server->state() == State::kEnded);
  pair.server->write("answer");
  pair.talk();
  CHECK(pair.at_client == "answer");
}

TEST_CASE("A stream that ends without the session's end fails it", "[tls]") {
  const auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  const bool during_handshake = GENERATE(true, false);
  if (!during_handshake) pair.talk();
  pair.server->receive_end();
  Pair::give(*pair.server, "", &pair.at_server);
  CHECK(pair.server->state() == State::kFailed);
  CHECK(pair.server->reason() == "error:0A000126:SSL routines::unexpected eof while reading");
}

TEST_CASE("Who speaks no TLS is told so, and nothing more is read", "[tls]") {
  const auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  const std::string bytes =
      GENERATE(as<std::string>(), "PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n\r\n",
               std::string(300, '\0'), std::string(300, '\x16'), std::string(300, '\xff'));
  Pair::give(*pair.server, bytes, &pair.at_server);
  CHECK(pair.server->state() == State::kFailed);
  CHECK(pair.server->reason().starts_with("error:0A"));
  Pair::give(*pair.server, Pair::take(*pair.client), &pair.at_server);
  CHECK(pair.server->state() == State::kFailed);
  CHECK(pair.at_server.empty());
}

TEST_CASE("A byte that was changed on the way fails the session", "[tls]") {
  const auto context = context_of(settings_of("server"));
  Pair pair(*context, *context);
  pair.talk();
  pair.client->write("SET key value\r\n");
  std::string record = Pair::take(*pair.client);
  record[record.size() / 2] ^= 1;
  Pair::give(*pair.server, record, &pair.at_server);
  CHECK(pair.server->state() == State::kFailed);
  CHECK(pair.at_server.empty());
  // The client is told.
  pair.talk();
  CHECK(pair.client->state() == State::kFailed);
}

TEST_CASE("Certificates of clients are judged as tls-auth-clients says", "[tls]") {
  Settings settings = settings_of("server");
  settings.clients = GENERATE(Clients::kRequired, Clients::kOptional, Clients::kNoCertificate);
  const auto context = context_of(settings);
  const auto state_with = [&](const std::string& name, std::string* reason) {
    const auto clients = context_of(settings_of(name));
    Pair pair(*context, *clients);
    pair.talk();
    *reason = pair.server->reason();
    return pair.server->state();
  };
  const bool ignores = settings.clients == Clients::kNoCertificate;
  std::string reason;
  CHECK(state_with("client", &reason) == State::kOpen);
  CHECK(state_with("old", &reason) == (ignores ? State::kOpen : State::kFailed));
  if (!ignores) CHECK(reason == "error:0A000086:SSL routines::certificate verify failed");
  CHECK(state_with("young", &reason) == (ignores ? State::kOpen : State::kFailed));
}

TEST_CASE("Other servers need a valid certificate whatever is asked of clients", "[tls]") {
  Settings settings = settings_of("server");
  settings.clients = GENERATE(Clients::kRequired, Clients::kOptional, Clients::kNoCertificate);
  const auto context = context_of(settings);
  const auto state_with = [&](const std::string& name) {
    const auto others = context_of(settings_of(name));
    Pair pair(*context, *others);
    pair.server = context->accept_server(pair.pool);
    pair.server->begin();
    pair.talk();
    return pair.server->state();
  };
  CHECK(state_with("client") == State::kOpen);
  CHECK(state_with("old") == State::kFailed);
  CHECK(state_with("young") == State::kFailed);
}

TEST_CASE("A server with a certificate that is not valid is not spoken to", "[tls]") {
  const auto clients = context_of(settings_of("client"));
  const std::string name = GENERATE(as<std::string>(), "old", "young");
  const auto context = context_of(settings_of(name));
  Pair pair(*context, *clients);
  pair.talk();
  CHECK(pair.client->state() == State::kFailed);
  CHECK(pair.client->reason() == "error:0A000086:SSL routines::certificate verify failed");
  CHECK(pair.server->state() == State::kFailed);
}

TEST_CASE("Certificates of another authority are refused by both ends", "[tls]") {
  Certificates others;
  others.add("stranger", "anna");
  Settings settings = settings_of("server");
  settings.cert_file = others.path("stranger.crt");
  settings.key_file = others.path("stranger.key");
  const auto stranger = context_of(settings);
  const auto own = context_of(settings_of("server"));
  Pair outgoing(*stranger, *own);
  outgoing.talk();
  CHECK(outgoing.client->state() == State::kFailed);
  Pair incoming(*own, *stranger);
  incoming.talk();
  CHECK(incoming.server->state() == State::kFailed);
}

TEST_CASE("The peer's name is its certificate's common name", "[tls]") {
  const auto context = context_of(settings_of("server"));
  const auto name_of = [&](const std::string& certificate) {
    const auto clients = context_of(settings_of(certificate));
    Pair pair(*context, *clients);
    pair.talk();
    REQUIRE(pair.server->state() == State::kOpen);
    CHECK(pair.client->peer_name() == "the server");
    return pair.server->peer_name();
  };
  CHECK(name_of("client") == "anna");
  // A name is never cut at a zero: it is nobody's.
  CHECK(name_of("nul") == std::string("anna\0x", 6));
}

TEST_CASE("The peer's URIs are all that its certificate has, in its order", "[tls]") {
  const auto context = context_of(settings_of("server"));
  const auto uris_of = [&](const std::string& certificate) {
    const auto clients = context_of(settings_of(certificate));
    Pair pair(*context, *clients);
    pair.talk();
    REQUIRE(pair.server->state() == State::kOpen);
    return pair.server->peer_uris();
  };
  CHECK(uris_of("uris") == std::vector<std::string>{"urn:b", "urn:a"});
  CHECK(uris_of("client").empty());
}

TEST_CASE("The client's certificate may be another than the server's", "[tls]") {
  Settings settings = settings_of("server");
  settings.client_cert_file = certificates().path("locked.crt");
  settings.client_key_file = certificates().path("locked.key");
  settings.client_key_file_password = "secret";
  const auto context = context_of(settings);
  Pair pair(*context, *context);
  pair.talk();
  CHECK(pair.server->peer_name() == "anna");
  CHECK(pair.client->peer_name() == "the server");
}

TEST_CASE("Protocols that both ends have are needed", "[tls]") {
  Settings settings = settings_of("server");
  settings.protocols = "TLSv1.2";
  const auto old = context_of(settings);
  settings.protocols = "tlsv1.3";
  const auto recent = context_of(settings);
  const auto any = context_of(settings_of("server"));
  const auto state_of = [](const Context& accepts, const Context& connects) {
    Pair pair(accepts, connects);
    pair.talk();
    return pair.server->state();
  };
  CHECK(state_of(*old, *any) == State::kOpen);
  CHECK(state_of(*recent, *any) == State::kOpen);
  CHECK(state_of(*old, *recent) == State::kFailed);
  CHECK(state_of(*recent, *old) == State::kFailed);
}

TEST_CASE("Settings of which no context can be made are told in one line", "[tls]") {
  const Settings good = settings_of("server");
  Settings bad = good;
  bad.cert_file.clear();
  CHECK(error_of(bad) == "No tls-cert-file configured!");
  bad = good;
  bad.key_file.clear();
  CHECK(error_of(bad) == "No tls-key-file configured!");
  bad = good;
  bad.cert_file = "/nowhere/at.all";
  CHECK(error_of(bad) ==
        "Failed to load certificate: /nowhere/at.all: error:80000002:system library::No such file "
        "or directory");
  bad = good;
  bad.key_file = certificates().path("client.key");
  CHECK(error_of(bad) == "Failed to load private key: " + bad.key_file +
                             ": error:05800074:x509 certificate routines::key values mismatch");
  bad = good;
  bad.ca_cert_file.clear();
  CHECK(error_of(bad).starts_with("Either tls-ca-cert-file or tls-ca-cert-dir must be specified"));
  bad.clients = Clients::kNoCertificate;
  CHECK(context_of(bad) != nullptr);
  bad.connects = true;
  CHECK(error_of(bad).starts_with("Either tls-ca-cert-file or tls-ca-cert-dir must be specified"));
  bad.ca_cert_dir = "/nowhere";
  CHECK(error_of(bad) ==
        "Failed to configure CA certificate(s) file/directory: /nowhere is not a directory");
  bad = good;
  bad.protocols = "TLSv1.2 SSLv3";
  CHECK(error_of(bad).starts_with("Invalid tls-protocols specified."));
  bad.protocols = " ";
  CHECK(error_of(bad).starts_with("Invalid tls-protocols specified."));
  bad = good;
  bad.ciphers = "none-such";
  CHECK(error_of(bad) == "Failed to configure ciphers: none-such");
  bad = good;
  bad.ciphersuites = "none-such";
  CHECK(error_of(bad) == "Failed to configure ciphersuites: none-such");
  bad = good;
  bad.dh_params_file = good.key_file;
  CHECK(error_of(bad) == good.key_file + ": failed to read DH params.");
  bad.dh_params_file = "/nowhere/at.all";
  CHECK(error_of(bad) == "Failed to load /nowhere/at.all: No such file or directory");
  // What is far too large for a certificate is not read.
  const TemporaryDirectory directory;
  bad = good;
  bad.cert_file = directory.path() / "large.crt";
  directory.write("large.crt", "");
  constexpr uintmax_t kMost = 64 << 20;
  std::filesystem::resize_file(bad.cert_file, kMost + 1);
  CHECK(error_of(bad) == "Failed to load " + bad.cert_file + ": File too large");
}

TEST_CASE("A key that is encrypted needs its password, which is never asked for", "[tls]") {
  Settings settings = settings_of("locked");
  CHECK(error_of(settings).starts_with("Failed to load private key: "));
  settings.key_file_password = "wrong";
  CHECK(error_of(settings).starts_with("Failed to load private key: "));
  settings.key_file_password = "secret";
  CHECK(context_of(settings) != nullptr);
}

}  // namespace latchkey::tests
