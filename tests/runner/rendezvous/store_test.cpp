// SPDX-License-Identifier: Apache-2.0
// Clients and a server over real sockets: what the store promises to those that keep to the protocol.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "runner/core/clock.h"
#include "runner/rendezvous/store_client.h"
#include "runner/rendezvous/store_server.h"
#include "runner/rendezvous/wire/store_channel.h"
#include "runner/rendezvous/wire/store_key.h"
#include "runner/system/files.h"
#include "runner/system/secret.h"
#include "tests/runner/rendezvous/raw_peer.h"

namespace muster {
namespace {

using testing::kToken;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<StoreServer> serve(const StoreLimits& limits = {}) {
  StoreServerOptions options;
  options.token = kToken;
  options.limits = limits;
  auto server = StoreServer::start(options);
  EXPECT_TRUE(server.ok()) << server.error().text();
  return std::move(server).value();
}

StoreClientOptions clientOptions(uint16_t port, int rank = 0) {
  StoreClientOptions options;
  options.address = {"127.0.0.1", port};
  options.key = storeKey(kToken, "");
  options.who = "rank " + std::to_string(rank);
  options.connectTimeout = 20;
  return options;
}

TEST(Store, KeepsValuesOfAllSizes) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70'000}, StoreClient::kMaxValue}) {
    std::string value(size, '\0');
    for (size_t i = 0; i < size; ++i) value[i] = static_cast<char>(i * 7 + i / 251);
    ASSERT_TRUE(client.set("key", value).ok());
    const auto got = client.get("key", 0);
    ASSERT_TRUE(got.ok()) << got.error().text();
    EXPECT_TRUE(*got == value) << size;
  }
}

/// So many that several threads send their answers.
TEST(Store, AnswersAllOfALargeBarrierAndGivesEachItsValue) {
  constexpr int kPeers = 600;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  const auto server = std::move(StoreServer::startLocal()).value();
  std::vector<StoreChannel> peers;
  for (int i = 0; i < kPeers; ++i) peers.push_back(StoreChannel::over(server->connect("").value()));
  for (uint32_t round = 1; round <= 3; ++round) {
    for (int i = 0; i < kPeers; ++i) {
      StoreChannel& peer = peers[static_cast<size_t>(i)];
      peer.put({StoreOp::kBarrier, 60'000, i, kPeers, fmt::format("step{}", round), "", 2 * round});
      peer.put({StoreOp::kGet, 60'000, 0, 0, fmt::format("key{}", round), "", 2 * round + 1});
      ASSERT_TRUE(peer.write().ok());
    }
    const std::string value(1000, static_cast<char>('a' + round));
    peers[0].put({StoreOp::kSet, 0, 0, 0, fmt::format("key{}", round), value, 1});
    ASSERT_TRUE(peers[0].write().ok());
    for (StoreChannel& peer : peers) {
      std::map<uint32_t, std::string> texts;
      while (texts.size() < (&peer == &peers[0] ? 3U : 2U)) {
        pollfd socket{peer.fd(), POLLIN, 0};
        ASSERT_EQ(poll(&socket, 1, 60'000), 1);
        std::vector<StoreResponse> answers;
        ASSERT_TRUE(peer.read(answers).ok());
        for (const StoreResponse& answer : answers) {
          EXPECT_EQ(answer.answer, StoreAnswer::kOk);
          EXPECT_TRUE(texts.emplace(answer.id, answer.text).second) << "answered twice";
        }
      }
      EXPECT_EQ(texts.at(2 * round + 1), value);
    }
  }
}

TEST(Store, RefusesWhatIsTooLargeWithItsSize) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  EXPECT_THAT(client.set(std::string(2000, 'k'), "").error().text(),
              HasSubstr("has 2000 bytes with its prefix"));
  EXPECT_THAT(client.set("key", std::string(StoreClient::kMaxValue + 1, 'v')).error().text(),
              HasSubstr("has 4194305 bytes, expected at most 4194304"));
  EXPECT_THAT(client.set("", "").error().text(), HasSubstr("empty store key"));
  EXPECT_THAT(client.get("key", -1).error().text(), HasSubstr("store timeout -1"));
  EXPECT_FALSE(client.get("key", std::numeric_limits<double>::quiet_NaN()).ok());
}

TEST(Store, WaitsForAKeyThatAnotherRankSets) {
  const auto server = serve();
  std::thread setter([&] {
    StoreClient client(clientOptions(server->port(), 1));
    EXPECT_TRUE(client.set("late", "value").ok());
  });
  StoreClient client(clientOptions(server->port()));
  const auto value = client.get("late", std::numeric_limits<double>::infinity());
  setter.join();
  ASSERT_TRUE(value.ok()) << value.error().text();
  EXPECT_EQ(*value, "value");
}

TEST(Store, LetsOneThreadSetWhatAnotherOfTheSameClientWaitsFor) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  std::thread waiting([&] { EXPECT_EQ(*client.get("key", 20), "value"); });
  EXPECT_TRUE(client.set("key", "value").ok());
  waiting.join();
}

TEST(Store, NamesKeyRankAndSecondsOfAWaitInVain) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port(), 7));
  const auto value = client.get("nccl-id", 0.25);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(value.error().text(), "rank 7 waited 0.25 s for store key nccl-id, which was not set");
  EXPECT_TRUE(client.set("nccl-id", "x").ok()) << "the connection must be of use afterwards";
}

TEST(Store, KeepsPrefixesApart) {
  const auto server = serve();
  StoreClientOptions options = clientOptions(server->port());
  options.prefix = "run/a/";
  options.key = storeKey(kToken, options.prefix);
  StoreClient a(options);
  options.prefix = "run/b/";
  options.key = storeKey(kToken, options.prefix);
  StoreClient b(options);
  ASSERT_TRUE(a.set("key", "1").ok());
  EXPECT_EQ(b.get("key", 0).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(*a.get("key", 0), "1");
}

TEST(Store, CountsExactlyUnderContention) {
  const auto server = serve();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank)
    threads.emplace_back([&, rank] {
      StoreClient client(clientOptions(server->port(), rank));
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(client.add("counter", rank + 1).ok());
    });
  for (std::thread& thread : threads) thread.join();
  StoreClient client(clientOptions(server->port()));
  EXPECT_EQ(*client.add("counter", -500), 0);
  EXPECT_EQ(*client.get("counter", 0), "0");
}

TEST(Store, RefusesToCountOnWhatIsNotANumber) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  ASSERT_TRUE(client.set("text", "12 apples").ok());
  EXPECT_THAT(client.add("text", 1).error().text(), HasSubstr("\"12 apples\", which is not a whole number"));
  ASSERT_TRUE(client.set("full", "9223372036854775807").ok());
  EXPECT_THAT(client.add("full", 1).error().text(), HasSubstr("64 bits"));
}

TEST(Store, ForgetsWhatIsCleared) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  for (const char* key : {"stage1/a", "stage1/b", "stage10/a", "stage2/a"})
    ASSERT_TRUE(client.set(key, "x").ok());
  EXPECT_EQ(*client.clear("stage1/"), 2);
  EXPECT_FALSE(client.get("stage1/a", 0).ok());
  EXPECT_TRUE(client.get("stage10/a", 0).ok());
  EXPECT_EQ(*client.clear("stage1/"), 0);
}

TEST(Store, HoldsABarrierUntilAllRanksAreThere) {
  const auto server = serve();
  constexpr int kRanks = 8, kSteps = 25;
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      StoreClient client(clientOptions(server->port(), rank));
      for (int step = 0; step < kSteps; ++step) {
        ++arrived;
        const Status status = client.barrier("step", rank, kRanks, 60);
        EXPECT_TRUE(status.ok()) << status.error().text();
        EXPECT_GE(arrived.load(), (step + 1) * kRanks) << "rank " << rank << " left early";
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Store, NamesTheRanksThatDidNotComeTheSameOnAllOthers) {
  const auto server = serve();
  Status patient, hasty;
  std::thread waiting(
      [&] { patient = StoreClient(clientOptions(server->port(), 2)).barrier("start", 2, 4, 60); });
  std::thread leaving(
      [&] { hasty = StoreClient(clientOptions(server->port(), 0)).barrier("start", 0, 4, 0.5); });
  leaving.join();
  waiting.join();
  // Either rank 2 was there when rank 0 gave up, or it came to a barrier that had been given up.
  const std::string both = "2 of 4 ranks came, missing: 1, 3", one = "1 of 4 ranks came, missing: 1, 2, 3";
  ASSERT_FALSE(hasty.ok());
  ASSERT_FALSE(patient.ok());
  EXPECT_EQ(patient.error().code, ErrorCode::kTimeout);
  const std::string said = hasty.error().text().find(both) != std::string::npos ? both : one;
  EXPECT_THAT(hasty.error().text(), HasSubstr("rank 0 waited up to 0.5 s at barrier start: " + said));
  EXPECT_THAT(patient.error().text(), HasSubstr("rank 2 waited up to 60 s at barrier start: " + said));
}

TEST(Store, RefusesABarrierThatContradictsItself) {
  const auto server = serve();
  StoreClient client(clientOptions(server->port()));
  EXPECT_FALSE(client.barrier("b", 3, 3, 1).ok());
  EXPECT_FALSE(client.barrier("b", -1, 3, 1).ok());
  EXPECT_FALSE(client.barrier("b", 0, 0, 1).ok());
}

/// 600 connections at once, each held by a rank that waits at a barrier for all the others.
TEST(Store, TakesAllRanksOf75NodesAtOnce) {
  constexpr int kRanks = 75 * 8;
  const auto server = serve(StoreLimits::forNodes(75));
  std::vector<std::unique_ptr<StoreClient>> clients;
  for (int rank = 0; rank < kRanks; ++rank) {
    clients.push_back(std::make_unique<StoreClient>(clientOptions(server->port(), rank)));
    const Status status = clients.back()->connect(60);
    ASSERT_TRUE(status.ok()) << status.error().text();
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      const Status status = clients[static_cast<size_t>(rank)]->barrier("start", rank, kRanks, 60);
      EXPECT_TRUE(status.ok()) << status.error().text();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turnedAway(server->counts()), "");
}

TEST(Store, SaysHowManyOpenFilesItNeedsAndHowToAllowThem) {
  StoreServerOptions options;
  options.token = kToken;
  options.limits.connections = size_t{1} << 40;  // more than any kernel lets even root have
  const auto server = StoreServer::start(options);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(server.error().text(), AllOf(HasSubstr("needs 1099511628288 open files"),
                                           HasSubstr("ulimit -Hn"), HasSubstr("LimitNOFILE=")));
}

TEST(Store, TellsOfRequestsForWhichItHasNoRoom) {
  StoreLimits limits;
  limits.keys = 2;
  const auto server = serve(limits);
  StoreClient client(clientOptions(server->port()));
  for (const char* key : {"a", "b"}) ASSERT_TRUE(client.set(key, "x").ok());
  EXPECT_THAT(client.set("c", "x").error().text(),
              HasSubstr("the store holds 2 keys already, it may hold 2"));
  EXPECT_EQ(turnedAway(server->counts()), "the rendezvous refused 1 request: its keys or memory are used up");
}

TEST(Store, WaitsForAServerThatStartsLater) {
  uint16_t port = 0;
  { port = serve()->port(); }
  StoreClient client(clientOptions(port));
  Status status;
  std::thread early([&] { status = client.connect(30); });
  StoreServerOptions options;
  options.token = kToken;
  options.port = port;
  const auto server = StoreServer::start(options);
  early.join();
  ASSERT_TRUE(server.ok()) << server.error().text();
  EXPECT_TRUE(status.ok()) << status.error().text();
}

TEST(Store, SaysWhereItLookedInVain) {
  uint16_t port = 0;
  { port = serve()->port(); }
  StoreClient client(clientOptions(port, 3));
  const Status status = client.connect(0.2);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_THAT(status.error().text(),
              AllOf(HasSubstr("rank 3 could not reach the store at 127.0.0.1:" + std::to_string(port)),
                    HasSubstr("Connection refused (ECONNREFUSED)"), HasSubstr("tried for 0.2 s")));
}

TEST(Store, TellsAWrongTokenAtOnce) {
  const auto server = serve();
  StoreClientOptions options = clientOptions(server->port(), 2);
  options.key = storeKey("guessed", "");
  options.connectTimeout = 3600;
  StoreClient client(options);
  const Status status = client.set("key", "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kProtocol);
  EXPECT_THAT(status.error().text(), HasSubstr("or MUSTER_TOKEN is not the same on every node"));
  // The refusal is sent first and counted then.
  const double deadline = systemClock().now() + 10;
  while (server->counts().noToken == 0 && systemClock().now() < deadline) std::this_thread::yield();
  EXPECT_GT(server->counts().noToken, 0u);
  EXPECT_EQ(server->counts().accepted, 0u);
}

TEST(Store, TellsThatItWasLost) {
  auto server = serve();
  StoreClientOptions options = clientOptions(server->port(), 1);
  options.connectTimeout = 0.5;
  StoreClient client(options);
  ASSERT_TRUE(client.connect(20).ok());
  Result<std::string> value = std::string();
  std::thread waiting([&] { value = client.get("key", 3600); });
  server.reset();
  waiting.join();
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().text(), ::testing::AnyOf(HasSubstr("rank 1 lost the store at 127.0.0.1:"),
                                                     HasSubstr("rank 1 could not reach the store")));
}

TEST(Store, EndsAWaitThatIsCancelled) {
  const auto server = serve();
  std::atomic<bool> cancelled{false};
  StoreClientOptions options = clientOptions(server->port(), 1);
  options.cancelled = [&] { return cancelled.load(); };
  StoreClient client(options);
  ASSERT_TRUE(client.connect(20).ok());
  Result<std::string> value = std::string();
  std::thread waiting([&] { value = client.get("key", 3600); });
  cancelled = true;
  waiting.join();
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().text(), HasSubstr("rank 1 was cancelled while it"));
}

TEST(Store, NeedsATokenOf128Bits) {
  for (const std::string good :
       {"0123456789abcdef0123456789ABCDEF", "abcdefghijklmnopqrstuv", "+/9zAbC_-xYzQqWwEeRrTt"}) {
    EXPECT_TRUE(checkToken(good).ok()) << good;
    EXPECT_FALSE(checkToken(good.substr(1)).ok()) << good;
  }
  EXPECT_TRUE(checkToken(*randomSecret()).ok());
  for (const std::string bad :
       {"", "secret", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "12345671234567123456712345671234567"}) {
    StoreServerOptions options;
    options.token = bad;
    const auto server = StoreServer::start(options);
    ASSERT_FALSE(server.ok()) << bad;
    EXPECT_EQ(server.error().code, ErrorCode::kUsage);
    EXPECT_THAT(server.error().text(),
                AllOf(HasSubstr("MUSTER_TOKEN"), HasSubstr("$(openssl rand -hex 16)")));
    if (!bad.empty()) {
      EXPECT_THAT(server.error().text(), Not(HasSubstr(bad)));
    }
  }
}

TEST(Store, HasAPortThatFollowsFromTheToken) {
  std::set<uint16_t> ports;
  for (int i = 0; i < 200; ++i) {
    const std::string token = *randomSecret();
    const uint16_t port = storePort(token, "12.0");
    EXPECT_TRUE(port >= kFirstStorePort && port <= kLastStorePort) << port;
    EXPECT_EQ(port, storePort(token, "12.0"));
    ports.insert(port);
  }
  EXPECT_GT(ports.size(), 150U) << "of 9,200";
  EXPECT_NE(storePort(kToken, "12.0"), storePort(kToken, "12.1"));
}

TEST(Store, NamesThePortItCannotHave) {
  const auto server = serve();
  StoreServerOptions options;
  options.token = kToken;
  options.port = server->port();
  const Error taken = StoreServer::start(options).error();
  EXPECT_EQ(taken.code, ErrorCode::kUsage);
  EXPECT_THAT(taken.text(),
              AllOf(HasSubstr("port " + std::to_string(server->port())), HasSubstr("EADDRINUSE"),
                    HasSubstr("correct --node-rank, else name another port")));
  options.bind = "no address";
  EXPECT_THAT(StoreServer::start(options).error().text(),
              HasSubstr("required: an address or a name of this machine"));
}

/// Whether something listens at this address.
bool reaches(const std::string& host, uint16_t port) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), nullptr, &found) != 0) return false;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> address(found, freeaddrinfo);
  const Fd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0;
}

/// 127.0.0.0/8 is all of this machine's, so its addresses are as different as those of two networks.
TEST(Store, ListensOnTheGivenAddressAlone) {
  for (const std::string given : {"127.0.0.1", "127.0.0.2", "localhost", "::1"}) {
    StoreServerOptions options;
    options.token = kToken;
    options.bind = given;
    const auto server = StoreServer::start(options);
    if (given == "::1" && !server.ok()) continue;  // this machine has no IPv6
    ASSERT_TRUE(server.ok()) << server.error().text();
    const uint16_t port = (*server)->port();
    EXPECT_TRUE(reaches((*server)->host(), port)) << given;
    for (const std::string address : {"127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"})
      EXPECT_EQ(reaches(address, port), address == (*server)->host()) << given << ": " << address;
  }
}

/// Where the address says nothing of how others come in, all may be meant: it is none of this machine's.
TEST(Store, ListensOnAllAddressesWhereTheGivenOneIsAnotherMachines) {
  StoreServerOptions options;
  options.token = kToken;
  options.bind = "192.0.2.1";  // for documentation: nobody has it
  const auto server = StoreServer::start(options);
  ASSERT_TRUE(server.ok()) << server.error().text();
  EXPECT_EQ((*server)->host(), "127.0.0.1");
  EXPECT_TRUE(reaches("127.0.0.2", (*server)->port()));
}

TEST(Store, ListensOnAllAddressesWhenAsked) {
  StoreServerOptions options;
  options.token = kToken;
  options.bind = "";
  const auto server = StoreServer::start(options);
  ASSERT_TRUE(server.ok()) << server.error().text();
  StoreClient client(clientOptions((*server)->port()));
  EXPECT_TRUE(client.set("key", "x").ok());
}

}  // namespace
}  // namespace muster
