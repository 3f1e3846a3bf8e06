// TLS on one connection: the handshake and the records, from OpenSSL, over bytes in memory.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer_pool.h"
#include "net/transport_layer.h"

struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace latchkey::tls {

class Session final : public net::TransportLayer {
 public:
  enum class Side : uint8_t { kAccepts, kConnects };
  // `server_name` is sent as SNI unless it is empty. `pool` must outlive the session; `context`
  // need not.
  Session(ssl_ctx_st* context, base::BufferPool& pool, Side side, const std::string& server_name);
  ~Session() override;

  // Refuses a peer without a valid certificate, also one that resumes a session which began
  // without. REQUIRES: nothing was received yet.
  void require_certificate();

  State state() const override { return state_; }
  void begin() override;
  void receive(std::span<const char> bytes) override { received_ = bytes; }
  void receive_end() override { ended_ = true; }
  size_t read(char* room, size_t size) override;
  void write(std::string_view bytes) override;
  void end() override;
  resp::OutputBuffer& wire() override { return wire_; }
  const std::string& reason() const override { return reason_; }
  std::string peer_name() const override;
  std::vector<std::string> peer_uris() const override;
  size_t memory() const override;

 private:
  // The functions that OpenSSL reads and writes by.
  struct Wire;
  struct Free {
    void operator()(ssl_st* session) const;
  };

  // False when the handshake is not over.
  bool advance_handshake();
  // Takes note of what a function of OpenSSL's returned that did not succeed.
  void note_failure(int result);

  std::unique_ptr<ssl_st, Free> ssl_;
  Side side_;
  State state_ = State::kHandshake;
  bool ended_ = false;              // nothing comes after received_
  std::span<const char> received_;  // not taken by OpenSSL yet
  resp::OutputBuffer wire_;
  std::string reason_;
};

}  // namespace latchkey::tls
