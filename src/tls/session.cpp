#include "tls/session.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "tls/error_text.h"

namespace latchkey::tls {

namespace {

// By the errors that are left SSL_get_error() would judge what comes next. Looking costs less than
// clearing, and there are hardly any.
void forget_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

}  // namespace

struct Session::Wire {
  static Session& of(BIO* bio) { return *static_cast<Session*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* room, size_t size, size_t* count) {
    Session& session = of(bio);
    BIO_clear_retry_flags(bio);
    *count = std::min(size, session.received_.size());
    if (*count == 0) {
      if (!session.ended_) BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(room, session.received_.data(), *count);
    session.received_ = session.received_.subspan(*count);
    return 1;
  }
  static int write(BIO* bio, const char* bytes, size_t size, size_t* count) {
    BIO_clear_retry_flags(bio);
    of(bio).wire_.append({bytes, size});
    *count = size;
    return 1;
  }
  static long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_EOF) return of(bio).ended_ && of(bio).received_.empty() ? 1 : 0;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }
  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  // Made once for the process.
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "latchkey");
      if (fresh == nullptr) throw std::bad_alloc();
      BIO_meth_set_read_ex(fresh, read);
      BIO_meth_set_write_ex(fresh, write);
      BIO_meth_set_ctrl(fresh, control);
      BIO_meth_set_create(fresh, create);
      return fresh;
    }();
    return made;
  }
};

void Session::Free::operator()(ssl_st* session) const {
  SSL_free(session);
}

Session::Session(ssl_ctx_st* context, base::BufferPool& pool, Side side,
                 const std::string& server_name)
    : ssl_(SSL_new(context)), side_(side), wire_(pool) {
  BIO* const bio = BIO_new(Wire::method());
  if (ssl_ == nullptr || bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, this);
  // The session owns it, for both directions.
  SSL_set_bio(ssl_.get(), bio, bio);
  if (side == Side::kAccepts) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
    if (!server_name.empty()) SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
  }
}

Session::~Session() {
  // A session that was not shut down would be dropped from the cache, though it was good.
  if (state_ != State::kFailed) SSL_set_shutdown(ssl_.get(), SSL_SENT_SHUTDOWN);
}

void Session::require_certificate() {
  constexpr std::string_view kOfServers = "servers";
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Sessions of other connections have another name, by which OpenSSL does not resume them here.
  SSL_set_session_id_context(ssl_.get(), reinterpret_cast<const unsigned char*>(kOfServers.data()),
                             static_cast<unsigned>(kOfServers.size()));
}

void Session::begin() {
  if (side_ == Side::kConnects) advance_handshake();
}

bool Session::advance_handshake() {
  forget_errors();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    state_ = State::kOpen;
    return true;
  }
  note_failure(result);
  return false;
}

size_t Session::read(char* room, size_t size) {
  if (state_ == State::kHandshake && !advance_handshake()) return 0;
  if (state_ != State::kOpen) {
    received_ = {};
    return 0;
  }
  // Asking would take a buffer, find nothing and give it back.
  if (received_.empty() && !ended_ && SSL_has_pending(ssl_.get()) == 0) return 0;
  forget_errors();
  size_t count = 0;
  const int result = SSL_read_ex(ssl_.get(), room, size, &count);
  if (result == 1) return count;
  note_failure(result);
  return 0;
}

void Session::write(std::string_view bytes) {
  if (state_ == State::kFailed) return;
  forget_errors();
  size_t count = 0;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count);
  if (result != 1) note_failure(result);
}

void Session::end() {
  if (state_ != State::kOpen && state_ != State::kEnded) return;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

void Session::note_failure(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return;
    case SSL_ERROR_ZERO_RETURN:
      state_ = State::kEnded;
      return;
    default:
      reason_ = take_error_text();
      state_ = State::kFailed;
      received_ = {};
  }
}

std::string Session::peer_name() const {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(ssl_.get()), X509_free);
  if (certificate == nullptr) return {};
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const int place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return {};
  unsigned char* text = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

std::vector<std::string> Session::peer_uris() const {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(ssl_.get()), X509_free);
  if (certificate == nullptr) return {};
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return uris;
}

size_t Session::memory() const {
  return sizeof(Session);
}

}  // namespace latchkey::tls
