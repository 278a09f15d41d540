// SPDX-License-Identifier: Apache-2.0
// Relays, squatters, replayers and peers without token, over real sockets: none is let in, none disturbs the
// others, and each is told apart. A sample by default; MUSTER_ATTACK_TRIES=1000 sets the number of tries.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <thread>

#include "runner/core/clock.h"
#include "runner/core/text.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_key.h"
#include "runner/rendezvous/wire/store_protocol.h"
#include "runner/system/secret.h"
#include "tests/runner/rendezvous/raw_peer.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::kGenerous;
using testing::kToken;
using testing::RawPeer;

const std::string kNotTls = "does not speak TLS", kNoToken = "has another token or none",
                  kAltered = "bytes were altered or replayed", kCut = "the connection was interrupted",
                  kEnded = "it closed the connection", kSilent = "no answer in time";

int tries(int sample) {
  const char* asked = std::getenv("MUSTER_ATTACK_TRIES");
  return asked == nullptr ? sample : std::atoi(asked);
}

/// Something that listens on 127.0.0.1 and gives each connection to `serve`, one after the other.
class Listening {
 public:
  explicit Listening(std::function<void(Fd)> serve)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_.get(), any, size), 0);
    EXPECT_EQ(listen(socket_.get(), SOMAXCONN), 0);
    EXPECT_EQ(getsockname(socket_.get(), any, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, serve = std::move(serve)] {
      while (!stopping_) {
        pollfd fd{socket_.get(), POLLIN, 0};
        if (poll(&fd, 1, 10) > 0) serve(Fd(accept(socket_.get(), nullptr, nullptr)));
      }
    });
  }
  ~Listening() {
    stopping_ = true;
    thread_.join();
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] bool stopping() const { return stopping_; }

 private:
  Fd socket_;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

enum class Way { kToServer, kToClient };

/// What a relay does to the bytes of one way, once they reach `offset`.
struct Tampering {
  enum class Kind { kNone, kFlip, kCut, kDrop, kTwice, kInsert } kind = Kind::kNone;
  Way way = Way::kToServer;
  size_t offset = 0;
  unsigned bit = 0;

  /// Whether the connection goes on; `at`: where in the way's bytes these begin.
  bool apply(size_t at, std::string& bytes) const {
    if (offset < at || offset >= at + bytes.size()) return true;
    const size_t here = offset - at;
    if (kind == Kind::kFlip) bytes[here] = static_cast<char>(bytes[here] ^ (1 << bit));
    if (kind == Kind::kDrop) bytes.erase(here, 1 + bit);
    if (kind == Kind::kTwice) bytes += bytes;
    if (kind == Kind::kInsert) bytes.insert(here, 1 + bit, 'x');
    if (kind == Kind::kCut) bytes.resize(here);
    return kind != Kind::kCut;
  }
};

/// Stands between clients and the server. The first connection after tamper() is tampered with.
class Interceptor {
 public:
  explicit Interceptor(uint16_t server) : server_(server), listening_([this](Fd client) { carry(client); }) {}
  [[nodiscard]] uint16_t port() const { return listening_.port(); }
  void tamper(const Tampering& next) {
    const std::lock_guard lock(mutex_);
    next_ = next;
    seen_ = {};
  }
  /// What went that way since then, over the first connection.
  [[nodiscard]] std::string seen(Way way) {
    const std::lock_guard lock(mutex_);
    return seen_[way == Way::kToServer ? 0 : 1];
  }

 private:
  void carry(const Fd& client) {
    Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    Tampering now;
    {
      const std::lock_guard lock(mutex_);
      std::swap(now, next_);
    }
    size_t at[2] = {0, 0};
    const int ends[2] = {client.get(), server.get()};
    while (!listening_.stopping()) {
      pollfd fds[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
      if (poll(fds, 2, 10) <= 0) continue;
      for (const int from : {0, 1}) {
        if (fds[from].revents == 0) continue;
        std::string bytes(65536, '\0');
        const ssize_t got = recv(ends[from], bytes.data(), bytes.size(), 0);
        if (got <= 0) return;
        bytes.resize(static_cast<size_t>(got));
        {
          const std::lock_guard lock(mutex_);
          seen_[static_cast<size_t>(from)] += bytes;
        }
        const size_t before = at[from];
        at[from] += bytes.size();
        const bool mine = (now.way == Way::kToServer) == (from == 0);
        const bool more = !mine || now.apply(before, bytes);
        if (send(ends[1 - from], bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 || !more) return;
      }
    }
  }

  uint16_t server_;
  std::mutex mutex_;
  Tampering next_;
  std::array<std::string, 2> seen_;
  Listening listening_;  // last: its thread uses all of the above
};

class Attack : public ::testing::Test {
 protected:
  Attack() {
    StoreServerOptions options;
    options.token = kToken;
    options.limits.handshakeTimeout = 0.5;
    server = StoreServer::start(options).value();
    client = connectTo(server->port());
    EXPECT_TRUE(client->set("before", "1").ok());
  }
  /// Whatever happened, the others are served.
  void TearDown() override {
    EXPECT_EQ(*client->get("before", 0), "1");
    EXPECT_TRUE(connectTo(server->port())->set("after", "2").ok());
  }
  static std::unique_ptr<StoreClient> connectTo(uint16_t port, double timeout = kGenerous) {
    StoreClientOptions options;
    options.address = {"127.0.0.1", port};
    options.key = storeKey(kToken, "");
    options.who = "node 1";
    options.connectTimeout = options.answerTimeout = timeout;
    return std::make_unique<StoreClient>(std::move(options));
  }
  void awaitCount(uint64_t StoreCounts::*count, uint64_t wanted) const {
    const double deadline = systemClock().now() + kGenerous;
    while (server->counts().*count < wanted && systemClock().now() < deadline) std::this_thread::yield();
    EXPECT_EQ(server->counts().*count, wanted);
  }

  std::unique_ptr<StoreServer> server;
  std::unique_ptr<StoreClient> client;
  std::mt19937 random{20261122};  // NOLINT: the same in every run
};

/// What a victim does through a relay: three calls. Returns the errors.
std::string joinAndWork(StoreClient& victim, const std::string& name) {
  std::string errors;
  const auto note = [&](const auto& result) {
    if (!result.ok()) errors += result.error().text() + "\n";
  };
  note(victim.set(name, "the value of " + name));
  const auto value = victim.get(name, 0);
  note(value);
  if (value.ok()) {
    EXPECT_EQ(*value, "the value of " + name);
  }
  note(victim.add(name + "/count", 1));
  return errors;
}

TEST_F(Attack, ARelayThatTampersChangesNothingAndIsTold) {
  Interceptor relay(server->port());
  relay.tamper({});
  ASSERT_EQ(joinAndWork(*connectTo(relay.port()), "clean"), "");
  const size_t toServer = relay.seen(Way::kToServer).size(), toClient = relay.seen(Way::kToClient).size();
  ASSERT_GT(std::min(toServer, toClient), 200U);
  const int count = tries(60);
  int told = 0;
  for (int i = 0; i < count; ++i) {
    Tampering tampering;
    tampering.kind = static_cast<Tampering::Kind>(1 + random() % 5);
    tampering.way = random() % 2 == 0 ? Way::kToServer : Way::kToClient;
    tampering.offset = random() % (tampering.way == Way::kToServer ? toServer : toClient);
    tampering.bit = random() % 8;
    relay.tamper(tampering);
    const std::string name = fmt::format("try{}", i);
    // A length that was altered lets both sides wait for what never comes: for as long as each may.
    const std::string errors = joinAndWork(*connectTo(relay.port(), 0.7), name);
    SCOPED_TRACE(fmt::format("{}: kind {} way {} offset {} bit {}", i, static_cast<int>(tampering.kind),
                             static_cast<int>(tampering.way), tampering.offset, tampering.bit));
    if (!errors.empty()) {
      ++told;
      EXPECT_THAT(errors, AnyOf(HasSubstr(kAltered), HasSubstr(kCut), HasSubstr(kEnded), HasSubstr(kSilent),
                                HasSubstr(kNoToken), HasSubstr(kNotTls)));
    }
    const auto kept = client->get(name, 0);
    if (kept.ok()) {
      EXPECT_EQ(*kept, "the value of " + name);
    }
    EXPECT_LE(*client->add(name + "/count", 0), 1);
  }
  EXPECT_GT(told, 0);
}

/// Within the handshake a change costs one try of many, afterwards the call in which it happens.
TEST_F(Attack, ARelayIsToldByWhatItDoes) {
  Interceptor relay(server->port());
  relay.tamper({});
  auto victim = connectTo(relay.port());
  ASSERT_TRUE(victim->connect(kGenerous).ok());
  const size_t greeting = relay.seen(Way::kToClient).size();
  ASSERT_TRUE(victim->set("clean", "1").ok());
  constexpr size_t kRecord = 5 + 1 + 16;  // what TLS adds to a request
  const size_t handshake = relay.seen(Way::kToServer).size() - kRecord -
                           encodeStoreRequest({StoreOp::kSet, 0, 0, 0, "clean", "1"}).size();
  victim.reset();  // the relay carries one connection at a time
  using Kind = Tampering::Kind;
  const auto errorOf = [&](Kind kind, Way way, size_t offset) {
    relay.tamper({kind, way, offset, 6});
    return joinAndWork(*connectTo(relay.port()), "x");
  };
  constexpr size_t kClientRandom = 20;
  EXPECT_EQ(errorOf(Kind::kFlip, Way::kToServer, kClientRandom), "") << "the second try is not altered";
  awaitCount(&StoreCounts::noToken, 1);
  EXPECT_EQ(errorOf(Kind::kFlip, Way::kToServer, 0), "");
  awaitCount(&StoreCounts::noTls, 1);
  EXPECT_THAT(errorOf(Kind::kFlip, Way::kToServer, handshake + 10), HasSubstr(kAltered));
  awaitCount(&StoreCounts::altered, 1);
  // The first copy is the request; the second ends the connection, which the next request may meet.
  EXPECT_THAT(errorOf(Kind::kTwice, Way::kToServer, handshake + 10), AnyOf("", HasSubstr(kAltered)));
  awaitCount(&StoreCounts::altered, 2);
  EXPECT_THAT(errorOf(Kind::kCut, Way::kToServer, handshake + 10), HasSubstr(kCut));
  EXPECT_THAT(errorOf(Kind::kFlip, Way::kToClient, greeting + 8), HasSubstr(kAltered));
}

TEST_F(Attack, AReplayOfACapturedJoinIsRefused) {
  Interceptor relay(server->port());
  relay.tamper({});
  ASSERT_EQ(joinAndWork(*connectTo(relay.port()), "victim"), "");
  const std::string captured = relay.seen(Way::kToServer), answers = relay.seen(Way::kToClient);
  const uint64_t accepted = server->counts().accepted;
  const int count = tries(20);
  for (int i = 0; i < count; ++i) {
    RawPeer replayer(server->port());
    const size_t first = 1 + random() % captured.size();
    replayer.send(captured.substr(0, first));
    if (i % 2 == 0) replayer.receive(random() % 200, 0.01);
    replayer.send(captured.substr(first));
    EXPECT_TRUE(replayer.closedWithin(kGenerous));
    awaitCount(&StoreCounts::altered, static_cast<uint64_t>(i) + 1);
  }
  EXPECT_EQ(server->counts().accepted, accepted);
  EXPECT_EQ(*client->add("victim/count", 0), 1) << "the replayed request must not count again";
  EXPECT_EQ(turnedAway(server->counts()),
            fmt::format("the rendezvous turned away {} connections: {} with altered or replayed bytes", count,
                        count));
  // And to a client: the answers of another connection.
  const Listening squatter([&](Fd socket) {
    RawPeer peer(std::move(socket));
    peer.receive(1);
    peer.send(answers);
    peer.closedWithin(0.2);
  });
  EXPECT_THAT(connectTo(squatter.port(), 0.5)->set("key", "x").error().text(), HasSubstr(kAltered));
}

/// A TLS server as there are many: with a certificate, and no pre-shared key.
void serveCertificate(int socket) {
  using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
  static const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  static const std::unique_ptr<X509, void (*)(X509*)> certificate(
      [] {
        X509* made = X509_new();
        X509_set_version(made, 2);
        X509_gmtime_adj(X509_getm_notBefore(made), -60);
        X509_gmtime_adj(X509_getm_notAfter(made), 3600);
        X509_set_pubkey(made, key.get());
        X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                                   reinterpret_cast<const uint8_t*>("127.0.0.1"), -1, -1, 0);
        X509_set_issuer_name(made, X509_get_subject_name(made));
        X509_sign(made, key.get(), EVP_sha256());
        return made;
      }(),
      X509_free);
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), socket);
  EXPECT_NE(SSL_accept(ssl.get()), 1) << "the client takes a certificate for the token";
}

struct Squatter {
  const char* name;
  std::string said;  ///< what the client's error has
  std::function<void(Fd)> serve;
};

std::vector<Squatter> squatters() {
  const auto says = [](const std::string& text) {
    return [text](Fd socket) {
      RawPeer peer(std::move(socket));
      peer.send(text);
      peer.closedWithin(0.2);
    };
  };
  return {{"silent", kSilent, [](Fd socket) { RawPeer(std::move(socket)).closedWithin(2); }},
          {"closes", kCut, [](const Fd&) {}},
          {"of another protocol", kNotTls, says("220 mail.example.org ESMTP\r\n")},
          {"of HTTP", kNotTls, says("HTTP/1.1 400 Bad Request\r\n\r\n")},
          {"echoes", kNoToken,
           [](Fd socket) {
             RawPeer peer(std::move(socket));
             peer.send(peer.receive(4096, 0.1));
             peer.closedWithin(0.2);
           }},
          {"refuses", kNoToken, says(std::string("\x15\x03\x03\x00\x02\x02\x28", 7))},
          {"with a certificate", kNoToken, [](const Fd& socket) { serveCertificate(socket.get()); }}};
}

TEST_F(Attack, ASquatterIsNotTakenForTheStore) {
  const std::vector<Squatter> all = squatters();
  const int each = std::max(1, tries(14) / static_cast<int>(all.size()));
  for (const Squatter& squatter : all) {
    SCOPED_TRACE(squatter.name);
    const Listening listening(squatter.serve);
    for (int i = 0; i < each; ++i) {
      const double begin = systemClock().now();
      const Status status = connectTo(listening.port(), 0.8)->connect(0.8);
      ASSERT_FALSE(status.ok());
      EXPECT_THAT(status.error().text(), AllOf(HasSubstr("node 1 could not reach the store at 127.0.0.1:"),
                                               HasSubstr(squatter.said)));
      // The deadline, and what one step may take beyond it on a busy machine.
      EXPECT_LT(systemClock().now() - begin, kGenerous);
    }
  }
  StoreServerOptions other;
  other.token = *randomSecret();
  const auto another = StoreServer::start(other).value();
  EXPECT_THAT(connectTo(another->port(), kGenerous)->connect(kGenerous).error().text(), HasSubstr(kNoToken));
}

TEST_F(Attack, APeerWithoutTheTokenIsToldByWhatItLacks) {
  const int count = tries(20);
  std::array<uint64_t, 4> did{};
  for (int i = 0; i < count; ++i) {
    RawPeer peer(server->port());
    const int kind = i % 4;
    ++did[static_cast<size_t>(kind)];
    if (kind == 0) {
      std::string garbage(1 + random() % 600, '\0');
      for (char& c : garbage) c = static_cast<char>(random());
      garbage[0] = static_cast<char>(garbage[0] | 0x40);  // no kind of a TLS record
      garbage.resize(std::max<size_t>(garbage.size(), 5));
      peer.send(garbage);
      EXPECT_TRUE(peer.closedWithin(kGenerous));
    } else if (kind == 1) {
      EXPECT_EQ(peer.tryKey(storeKey(*randomSecret(), "")), TlsFault::kNoToken);
    } else if (kind == 2) {
      // A client of certificates, as a web browser is.
      const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                                 SSL_CTX_free);
      const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
      SSL_set_fd(ssl.get(), peer.descriptor());
      EXPECT_NE(SSL_connect(ssl.get()), 1);
    } else {
      peer.send("\x16\x03");  // and then nothing
      EXPECT_TRUE(peer.closedWithin(kGenerous));
    }
    EXPECT_EQ(*client->get("before", 0), "1");
  }
  awaitCount(&StoreCounts::noTls, did[0]);
  awaitCount(&StoreCounts::noToken, did[1] + did[2]);
  awaitCount(&StoreCounts::late, did[3]);
  EXPECT_EQ(server->counts().accepted, 1U) << "the fixture's own client";
  EXPECT_EQ(turnedAway(server->counts()),
            fmt::format("the rendezvous turned away {} connections: {} without TLS, {} with no token or "
                        "another one, {} too slow",
                        count, did[0], did[1] + did[2], did[3]));
}

}  // namespace
}  // namespace muster
