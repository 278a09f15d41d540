// SPDX-License-Identifier: Apache-2.0
// Key files: made once, private, of one type; signatures of the standard's own examples.
#include "runner/attest/signing_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/attest/envelope.h"
#include "tests/support/process.h"

namespace muster::attest {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::array<unsigned char, 32> bytes32(const std::string& hex) {
  std::array<unsigned char, 32> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

// RFC 8032, 7.1, test 2: the secret key, the public key and the signature of the one byte 0x72.
TEST(SigningKey, SignsAsTheStandardSays) {
  const SecretKey key(bytes32("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  EXPECT_EQ(key.publicKey().bytes,
            bytes32("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
  EXPECT_EQ(base64(key.sign("\x72")),
            "kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==");
  EXPECT_TRUE(key.publicKey().verifies("\x72", key.sign("\x72")));
  EXPECT_FALSE(key.publicKey().verifies("\x73", key.sign("\x72")));
  EXPECT_FALSE(key.publicKey().verifies("\x72", ""));
}

TEST(SigningKey, IsKeptInFilesOfItsOwnerAlone) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "key";
  const auto made = makeKeyPair(path);
  ASSERT_TRUE(made.ok()) << made.error().text();
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  const auto secret = readSecretKey(path);
  ASSERT_TRUE(secret.ok()) << secret.error().text();
  EXPECT_EQ(secret->publicKey().bytes, made->bytes);
  EXPECT_EQ(readPublicKey(path.string() + ".pub")->bytes, made->bytes);
  for (const int mode : {0644, 0640, 0604, 0660}) {
    ASSERT_EQ(chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_FALSE(readSecretKey(path).ok()) << mode;
  }
}

TEST(SigningKey, IsNeverOverwritten) {
  const testing::TempDir folder;
  const fs::path path = folder.path() / "key";
  ASSERT_TRUE(makeKeyPair(path).ok());
  const std::string before = testing::readWhole(path);
  EXPECT_FALSE(makeKeyPair(path).ok());
  EXPECT_EQ(testing::readWhole(path), before);
  fs::remove(path);
  EXPECT_FALSE(makeKeyPair(path).ok()) << "its public half is there";
  EXPECT_FALSE(fs::exists(path));
  fs::create_symlink(folder.path() / "elsewhere", folder.path() / "link");
  EXPECT_FALSE(makeKeyPair(folder.path() / "link").ok());
}

TEST(SigningKey, LeavesNothingInAFolderOfAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const testing::TempDir folder;
  const fs::path his = folder.path() / "his";
  fs::create_directory(his);
  ASSERT_EQ(chown(his.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(makeKeyPair(his / "key").ok());
  EXPECT_TRUE(fs::is_empty(his));
}

TEST(SigningKey, RefusesOtherFilesWithWhatTheyAre) {
  const testing::TempDir folder;
  ASSERT_TRUE(makeKeyPair(folder.path() / "key").ok());
  const std::string secret = testing::readWhole(folder.path() / "key");
  const auto refusal = [&](const std::string& text) {
    const fs::path path = folder.write("other", text);
    EXPECT_EQ(chmod(path.c_str(), 0600), 0);
    const auto key = readSecretKey(path);
    return key.ok() ? "" : key.error().text();
  };
  EXPECT_EQ(refusal(secret), "");
  EXPECT_THAT(refusal(testing::readWhole(folder.path() / "key.pub")), HasSubstr("holds a \"PUBLIC KEY\""));
  EXPECT_THAT(refusal(""), HasSubstr("is not a PEM file"));
  EXPECT_THAT(refusal(secret.substr(0, 60)), HasSubstr("is truncated"));
  EXPECT_THAT(refusal("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
              HasSubstr("another type"));
  EXPECT_THAT(refusal("-----BEGIN PRIVATE KEY-----\n!\n-----END PRIVATE KEY-----\n"),
              HasSubstr("another type"));
  EXPECT_THAT(refusal(std::string(100'000, 'x')), HasSubstr("larger"));
  EXPECT_FALSE(readPublicKey(folder.path() / "key").ok()) << "a private key is none to verify with";
}

TEST(SigningKey, ReadsOnlyTheBase64ThatItWrites) {
  for (const std::string& bytes :
       {std::string(), std::string("a"), std::string("ab"), std::string("abc\0d", 5)})
    EXPECT_EQ(*fromBase64(base64(bytes)), bytes);
  for (const char* text : {"YQ", "YQ=", "YR==", "YQ==\n", " YQ==", "Y Q==", "YQ==YQ==", "-_==", "="})
    EXPECT_FALSE(fromBase64(text).ok()) << text;
}

}  // namespace
}  // namespace muster::attest
