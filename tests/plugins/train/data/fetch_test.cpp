// SPDX-License-Identifier: Apache-2.0
// Downloads from a real HTTP server on loopback: going on after a cut, checksums, what a server may do wrong.
#include "plugins/train/data/files/fetch.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "plugins/train/data/download.h"
#include "plugins/train/data/files/checksum.h"
#include "plugins/train/data/files/tar.h"
#include "runner/system/files.h"
#include "tests/plugins/recording_host.h"
#include "tests/support/process.h"

namespace muster::train {
namespace {

using ::testing::HasSubstr;

/// Serves one content at any path, with ranges; the first `cuts` answers end after `cutAfter` bytes.
class Server {
 public:
  explicit Server(std::string content)
      : content_(std::move(content)), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    listen(socket_.get(), 8);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/file"; }

  std::atomic<int> cuts = 0;
  std::atomic<size_t> cutAfter = 0;
  std::atomic<bool> missing = false;
  std::atomic<int> requests = 0;
  std::atomic<size_t> lastFirst = 0;  ///< where the last range began

 private:
  void serve() {
    while (true) {
      const Fd client(accept(socket_.get(), nullptr, nullptr));
      if (!client.valid()) return;
      char buffer[4096];
      const ssize_t got = recv(client.get(), buffer, sizeof buffer, 0);
      if (got > 0) answer(client.get(), std::string(buffer, static_cast<size_t>(got)));
    }
  }
  void answer(int client, const std::string& request) {
    ++requests;
    const auto range = request.find("Range: bytes=");
    const size_t first = range == std::string::npos ? 0 : std::stoul(request.substr(range + 13));
    lastFirst = first;
    std::string head = "HTTP/1.1 404 Not Found\r\n";
    std::string body;
    if (!missing && first >= content_.size() && first > 0) {
      head = "HTTP/1.1 416 Range Not Satisfiable\r\n";
    } else if (!missing) {
      head = range == std::string::npos
                 ? "HTTP/1.1 200 OK\r\n"
                 : "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(first) + "-" +
                       std::to_string(content_.size() - 1) + "/" + std::to_string(content_.size()) + "\r\n";
      body = content_.substr(first);
    }
    head += "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    if (cuts > 0 && cuts-- > 0) body.resize(std::min<size_t>(body.size(), cutAfter));
    const std::string all = head + body;
    (void)send(client, all.data(), all.size(), MSG_NOSIGNAL);
  }

  std::string content_;
  Fd socket_;
  int port_ = 0;
  std::thread thread_;
};

class Fetch : public ::testing::Test {
 protected:
  static std::string content() {
    std::string bytes;
    for (int i = 0; i < 50000; ++i) bytes.push_back(static_cast<char>(i * 7 % 253));
    return bytes;
  }
  std::string sha256() { return *sha256OfFile(folder_.write("whole", content())); }
  Status fetch(const std::string& sha256, uint64_t limit = 1 << 20) {
    return fetchFile({server_.url(), sha256, limit, "http"}, target_,
                     [](uint64_t, uint64_t) { return true; });
  }
  testing::TempDir folder_;
  std::filesystem::path target_ = folder_.path() / "file";
  Server server_{content()};
};

TEST(Checksum, IsThatOfTheStandard) {
  const testing::TempDir folder;
  EXPECT_EQ(*sha256OfFile(folder.write("empty", "")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(*sha256OfFile(folder.write("abc", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Fetch, PutsAFileInPlace) {
  const Status status = fetch(sha256());
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(testing::readWhole(target_), content());
  EXPECT_FALSE(std::filesystem::exists(target_.string() + ".part"));
}

TEST_F(Fetch, GoesOnWhereATransferWasCut) {
  server_.cuts = 3;
  server_.cutAfter = 10000;
  const Status status = fetch(sha256());
  ASSERT_TRUE(status.ok()) << status.error().text();
  EXPECT_EQ(testing::readWhole(target_), content());
  EXPECT_EQ(server_.requests, 4);
  EXPECT_EQ(server_.lastFirst, 30000u);
}

TEST_F(Fetch, GoesOnInALaterRun) {
  folder_.write("file.part", content().substr(0, 20000));
  ASSERT_TRUE(fetch(sha256()).ok());
  EXPECT_EQ(server_.lastFirst, 20000u);
  EXPECT_EQ(testing::readWhole(target_), content());
  std::filesystem::rename(target_, target_.string() + ".part");
  EXPECT_TRUE(fetch(sha256()).ok()) << "all of it was there already";
}

TEST_F(Fetch, RefusesAWrongChecksumAndStartsAnew) {
  folder_.write("file.part", std::string(20000, 'x'));
  const Status status = fetch(sha256());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().message, HasSubstr("SHA-256 of the 50000 bytes is"));
  EXPECT_FALSE(std::filesystem::exists(target_));
  EXPECT_TRUE(fetch(sha256()).ok()) << "the bad bytes are gone";
}

TEST_F(Fetch, TellsWhatTheServerSaid) {
  server_.missing = true;
  EXPECT_THAT(fetch(sha256()).error().text(), HasSubstr("(HTTP 404)"));
  server_.missing = false;
  EXPECT_THAT(fetch(sha256(), 1000).error().text(), HasSubstr("longer than the 1000 bytes"));
}

TEST_F(Fetch, SpeaksHttpsOnly) {
  const auto from = [&](const std::string& url) {
    const Status status = fetchFile({url, sha256()}, target_, [](uint64_t, uint64_t) { return true; });
    return status.ok() ? "fetched" : status.error().text();
  };
  folder_.write("secret", content());
  for (const std::string& url : {server_.url(), "file://" + (folder_.path() / "secret").string(),
                                 std::string("ftp://127.0.0.1/file"), std::string("HTTP://127.0.0.1/file")})
    EXPECT_THAT(from(url), HasSubstr("only https:// is fetched")) << url;
  EXPECT_EQ(server_.requests, 0);
  EXPECT_FALSE(std::filesystem::exists(target_.string() + ".part"));
}

/// Who may write into the folder must not choose where the bytes go.
TEST_F(Fetch, WritesThroughNoLink) {
  const auto victim = folder_.write("victim", "kept");
  for (const bool symbolic : {true, false}) {
    const std::filesystem::path part = target_.string() + ".part";
    std::filesystem::remove(part);
    if (symbolic)
      std::filesystem::create_symlink(victim, part);
    else
      std::filesystem::create_hard_link(victim, part);
    EXPECT_FALSE(fetch(sha256()).ok());
    EXPECT_EQ(testing::readWhole(victim), "kept");
    EXPECT_FALSE(std::filesystem::exists(target_));
  }
}

/// No file is used that is not the publisher's, wherever it came from.
TEST_F(Fetch, VerifiesWhatIsThereAlready) {
  const testing::RecordingHost host;
  DatasetSpec spec;
  spec.mode = "cifar100";
  spec.folder = folder_.path().string();
  const std::filesystem::path own = downloadFolder(spec);
  std::filesystem::create_directory(own);
  std::ofstream(own / "train.bin") << "another";
  const Status status = fetchDataset(sdk::Host(host.table()), spec, "https://127.0.0.1:1");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(status.error().text(), HasSubstr("train.bin: its SHA-256 is not"));
  EXPECT_EQ(testing::readWhole(own / "train.bin"), "another");
  // A plan must not learn of other files, nor wait for a pipe.
  for (const bool link : {true, false}) {
    std::filesystem::remove(own / "train.bin");
    if (link)
      std::filesystem::create_symlink("/etc/passwd", own / "train.bin");
    else
      ASSERT_EQ(mkfifo((own / "train.bin").c_str(), 0600), 0);
    EXPECT_THAT(fetchDataset(sdk::Host(host.table()), spec, "https://127.0.0.1:1").error().text(),
                HasSubstr("it must be a regular file that can be read"));
  }
}

/// What a server sends must not lie where a program looks for its configuration, and what others put beside a
/// download is no part of it.
TEST_F(Fetch, KeepsToADirectoryOfItsOwn) {
  folder_.write("train.bin", "another's");
  const testing::RecordingHost host;
  DatasetSpec spec;
  spec.mode = "cifar100";
  spec.folder = folder_.path().string();
  EXPECT_THAT(fetchDataset(sdk::Host(host.table()), spec, "https://127.0.0.1:1").error().text(),
              HasSubstr("the download ended after 0 bytes"));
  EXPECT_EQ(testing::readWhole(folder_.path() / "train.bin"), "another's");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("muster-cifar100", "train.bin"));
  const auto part = downloadFolder(spec) / "cifar-100-binary.tar.gz.part";
  EXPECT_EQ(std::filesystem::status(part).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::filesystem::permissions(downloadFolder(spec), std::filesystem::perms::all);
  EXPECT_THAT(fetchDataset(sdk::Host(host.table()), spec, "https://127.0.0.1:1").error().text(),
              HasSubstr("refused"));
}

TEST_F(Fetch, MakesNoDirectoryThatAPlanNames) {
  const testing::RecordingHost host;
  DatasetSpec spec;
  spec.mode = "cifar100";
  spec.folder = (folder_.path() / "nologin/sub").string();
  const Status status = fetchDataset(sdk::Host(host.table()), spec, "https://127.0.0.1:1");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().text(), HasSubstr("no such directory; make it first"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "nologin"));
}

TEST_F(Fetch, StopsWhenItIsCancelled) {
  const Status status = fetchFile({server_.url(), sha256(), 1 << 20, "http"}, target_,
                                  [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(status.error().code, ErrorCode::kTimeout);
}

std::string tarMember(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  char size[13];
  snprintf(size, sizeof size, "%011zo", content.size());
  header.replace(124, 11, size);
  header.replace(148, 8, "        ");
  header[156] = '0';
  unsigned sum = 0;
  for (char c : header) sum += static_cast<unsigned char>(c);
  char digits[8];
  snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

TEST(Tar, TakesOutWhatIsNamedAndNothingOutsideOfTheFolder) {
  const testing::TempDir folder;
  const std::string archive = tarMember("cifar/train.bin", "train") + tarMember("../../evil.bin", "evil") +
                              tarMember("cifar/test.bin", std::string(700, 't')) + std::string(1024, '\0');
  const auto path = folder.write("a.tar", archive);
  ASSERT_TRUE(extractFiles(path, {"train.bin", "test.bin", "evil.bin"}, folder.path()).ok());
  EXPECT_EQ(testing::readWhole(folder.path() / "train.bin"), "train");
  EXPECT_EQ(testing::readWhole(folder.path() / "test.bin").size(), 700u);
  EXPECT_EQ(testing::readWhole(folder.path() / "evil.bin"), "evil") << "inside of the folder";
  EXPECT_FALSE(std::filesystem::exists(folder.path().parent_path().parent_path() / "evil.bin"));
}

TEST(Tar, NamesWhereAnArchiveIsDamagedAndWhatItLacks) {
  const testing::TempDir folder;
  const std::string archive = tarMember("a/train.bin", std::string(600, 'x'));
  EXPECT_THAT(extractFiles(folder.write("a.tar", archive), {"test.bin"}, folder.path()).error().text(),
              HasSubstr("it lacks test.bin"));
  EXPECT_THAT(extractFiles(folder.write("b.tar", archive.substr(0, 900)), {"train.bin"}, folder.path())
                  .error()
                  .text(),
              HasSubstr("at byte 900: it ends inside train.bin of 600 bytes"));
  std::string bent = archive;
  bent[3] = 'q';
  EXPECT_THAT(extractFiles(folder.write("c.tar", bent), {"train.bin"}, folder.path()).error().text(),
              HasSubstr("at byte 0: no header"));
}

}  // namespace
}  // namespace muster::train
