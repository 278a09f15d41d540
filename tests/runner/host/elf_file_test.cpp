// SPDX-License-Identifier: Apache-2.0
// The ELF reader on good, cut, mutated and foreign files: it answers or refuses, and never reads beyond.
#include "runner/host/elf_file.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "plugins/abi/muster_plugin.h"
#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

std::string goodLibrary() {
  return testing::readWhole(testing::buildDir() / "tests" / "fakes" / "fake-ok.so");
}

Result<std::string> readFrom(const std::string& content, std::string_view symbol = "muster_plugin",
                             size_t bytes = sizeof(muster_plugin_info)) {
  const Fd file(memfd_create("x.so", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return readElfSymbol(file.get(), "x.so", symbol, bytes);
}

void expectRefusedElf(const std::string& content, const std::string& why) {
  const Result<std::string> data = readFrom(content);
  ASSERT_FALSE(data.ok()) << why;
  EXPECT_THAT(data.error().text(), HasSubstr(why));
}

/// `content` with one header field replaced.
template <typename T>
std::string elfWith(std::string content, T Elf64_Ehdr::*field, T value) {
  Elf64_Ehdr header;
  std::memcpy(&header, content.data(), sizeof header);
  header.*field = value;
  std::memcpy(content.data(), &header, sizeof header);
  return content;
}

TEST(ElfFile, ReadsTheSymbolsBytes) {
  const Result<std::string> data = readFrom(goodLibrary());
  ASSERT_TRUE(data.ok()) << data.error().text();
  muster_plugin_info info;
  std::memcpy(&info, data->data(), sizeof info);
  EXPECT_EQ(info.magic, MUSTER_PLUGIN_MAGIC);
  EXPECT_STREQ(info.name, "fake-ok");
}

TEST(ElfFile, NeedsNoSectionHeaders) {
  std::string stripped = elfWith(goodLibrary(), &Elf64_Ehdr::e_shoff, Elf64_Off{0});
  stripped = elfWith(stripped, &Elf64_Ehdr::e_shnum, Elf64_Half{0});
  EXPECT_TRUE(readFrom(stripped).ok());
}

TEST(ElfFile, RefusesWhatIsNotALibraryForThisMachine) {
  expectRefusedElf("", "its header lies beyond the end of the file");
  expectRefusedElf(std::string(4096, 'x'), "does not start with the ELF magic");
  std::string narrow = goodLibrary();
  narrow[EI_CLASS] = ELFCLASS32;
  expectRefusedElf(narrow, "not 64-bit little-endian");
  expectRefusedElf(elfWith(goodLibrary(), &Elf64_Ehdr::e_type, Elf64_Half{ET_REL}), "its type is 1");
  expectRefusedElf(elfWith(goodLibrary(), &Elf64_Ehdr::e_machine, Elf64_Half{EM_S390}),
                   "it is for ELF machine 22");
  expectRefusedElf(elfWith(goodLibrary(), &Elf64_Ehdr::e_phoff, Elf64_Off{1} << 62),
                   "beyond the end of the file");
  expectRefusedElf(elfWith(goodLibrary(), &Elf64_Ehdr::e_phnum, Elf64_Half{0}), "no usable program headers");
}

TEST(ElfFile, RefusesAMissingShortOrWrongSymbol) {
  EXPECT_THAT(readFrom(goodLibrary(), "muster_plug").error().text(),
              HasSubstr("exports no symbol muster_plug:"));
  EXPECT_THAT(readFrom(goodLibrary(), "muster_plugin_entry").error().text(), HasSubstr("is not data"));
  EXPECT_THAT(readFrom(goodLibrary(), "muster_plugin", 4096).error().text(),
              HasSubstr("has 120 bytes, expected 4096"));
}

TEST(ElfFile, SurvivesEveryCut) {
  const std::string whole = goodLibrary();
  int refused = 0;
  for (size_t size = 0; size < whole.size(); size += 97)
    if (!readFrom(whole.substr(0, size)).ok()) ++refused;
  EXPECT_GT(refused, 10);
}

TEST(ElfFile, SurvivesMutations) {
  const std::string whole = goodLibrary();
  std::mt19937 random(7);
  int answered = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string mutated = whole;
    // The headers and tables stand at the front: that is where a mutation reaches the reader.
    for (int j = 0; j < 8; ++j) mutated[random() % 2048] = static_cast<char>(random());
    const Result<std::string> data = readFrom(mutated);
    if (data.ok()) {
      EXPECT_EQ(data->size(), sizeof(muster_plugin_info));
      ++answered;
    }
  }
  EXPECT_LT(answered, 2000);
}

}  // namespace
}  // namespace muster
