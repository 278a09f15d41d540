// SPDX-License-Identifier: Apache-2.0
// See elf_file.h. Addresses in the dynamic section are mapped to file offsets through the PT_LOAD segments.
#include "runner/host/elf_file.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMaxTable = 64ull << 20;  // symbol and string tables of real libraries are far smaller
#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

/// One open library file and what its headers say.
class Elf {
 public:
  Elf(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  Status load() {
    struct stat info {};
    if (fstat(fd_, &info) != 0) return broken(errnoText(errno));
    size_ = static_cast<uint64_t>(info.st_size);
    MUSTER_CHECK_OK(loadHeader());
    MUSTER_CHECK_OK(loadSegments());
    return loadDynamic();
  }

  Result<std::string> symbolData(std::string_view wanted, size_t bytes) const {
    MUSTER_TRY(const std::string names, tableAt(DT_STRTAB, dynamic(DT_STRSZ), "string table"));
    MUSTER_TRY(const uint64_t count, symbolCount());
    MUSTER_TRY(const std::string symbols, tableAt(DT_SYMTAB, count * sizeof(Elf64_Sym), "symbol table"));
    for (uint64_t i = 0; i < count; ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols.data() + i * sizeof symbol, sizeof symbol);
      if (symbol.st_shndx != SHN_UNDEF && nameIs(names, symbol.st_name, wanted))
        return dataOf(symbol, wanted, bytes);
    }
    return Error{
        ErrorCode::kProtocol,
        fmt::format("exports no symbol {}: this is not a Muster plugin (see plugins/abi/README.md)", wanted),
        path_};
  }

 private:
  [[nodiscard]] Error broken(const std::string& what) const {
    return Error{ErrorCode::kProtocol, "not a loadable ELF library: " + what, path_};
  }

  Status read(uint64_t offset, void* out, uint64_t bytes, const char* what) const {
    if (offset > size_ || bytes > size_ - offset)
      return broken(fmt::format("its {} lies beyond the end of the file", what));
    auto* at = static_cast<char*>(out);
    while (bytes > 0) {
      const ssize_t n = pread(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return broken(n < 0 ? errnoText(errno) : "the file shrank while it was read");
      at += n;
      offset += static_cast<uint64_t>(n);
      bytes -= static_cast<uint64_t>(n);
    }
    return {};
  }

  Status loadHeader() {
    MUSTER_CHECK_OK(read(0, &header_, sizeof header_, "header"));
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
      return broken("it does not start with the ELF magic");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      return broken("it is not 64-bit little-endian");
    if (header_.e_type != ET_DYN)
      return broken(fmt::format("its type is {}, a shared library has {}", header_.e_type, ET_DYN));
    if (header_.e_machine != kMachine)
      return broken(fmt::format("it is for ELF machine {}, this host is {}", header_.e_machine, kMachine));
    return {};
  }

  Status loadSegments() {
    if (header_.e_phentsize != sizeof(Elf64_Phdr) || header_.e_phnum == 0 || header_.e_phnum == PN_XNUM)
      return broken("it has no usable program headers");
    segments_.resize(header_.e_phnum);
    return read(header_.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr),
                "program header table");
  }

  Status loadDynamic() {
    const auto segment = std::find_if(segments_.begin(), segments_.end(),
                                      [](const Elf64_Phdr& s) { return s.p_type == PT_DYNAMIC; });
    if (segment == segments_.end()) return broken("it has no dynamic section");
    if (segment->p_filesz > (1u << 20)) return broken("its dynamic section is larger than 1 MiB");
    std::vector<Elf64_Dyn> entries(segment->p_filesz / sizeof(Elf64_Dyn));
    MUSTER_CHECK_OK(
        read(segment->p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn), "dynamic section"));
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      dynamic_.emplace(entry.d_tag, entry.d_un.d_val);
    }
    return {};
  }

  [[nodiscard]] uint64_t dynamic(int64_t tag) const {
    const auto found = dynamic_.find(tag);
    return found == dynamic_.end() ? 0 : found->second;
  }

  /// The file offset of `bytes` bytes at `address`; bytes that only exist in memory (.bss) have none.
  [[nodiscard]] Result<uint64_t> offsetOf(uint64_t address, uint64_t bytes, const char* what) const {
    for (const Elf64_Phdr& s : segments_) {
      if (s.p_type != PT_LOAD || address < s.p_vaddr) continue;
      const uint64_t inside = address - s.p_vaddr;
      if (inside > s.p_filesz || bytes > s.p_filesz - inside) continue;
      if (s.p_offset > size_ || inside > size_ - s.p_offset) break;
      return s.p_offset + inside;
    }
    return broken(fmt::format("its {} is not in any loaded segment of the file", what));
  }

  [[nodiscard]] Result<std::string> tableAt(int64_t tag, uint64_t bytes, const char* what) const {
    if (dynamic_.count(tag) == 0) return broken(fmt::format("it has no {}", what));
    if (bytes > kMaxTable) return broken(fmt::format("its {} claims {} bytes", what, bytes));
    MUSTER_TRY(const uint64_t offset, offsetOf(dynamic(tag), bytes, what));
    std::string table(bytes, '\0');
    MUSTER_CHECK_OK(read(offset, table.data(), bytes, what));
    return table;
  }

  [[nodiscard]] Result<uint32_t> wordAt(uint64_t address, const char* what) const {
    MUSTER_TRY(const uint64_t offset, offsetOf(address, sizeof(uint32_t), what));
    uint32_t word = 0;
    MUSTER_CHECK_OK(read(offset, &word, sizeof word, what));
    return word;
  }

  /// How many dynamic symbols there are: the dynamic section does not say, but both kinds of hash table do.
  [[nodiscard]] Result<uint64_t> symbolCount() const {
    uint64_t count = 0;
    if (dynamic_.count(DT_HASH) != 0) {
      MUSTER_TRY(const uint32_t chains, wordAt(dynamic(DT_HASH) + 4, "hash table"));
      count = chains;
    } else if (dynamic_.count(DT_GNU_HASH) != 0) {
      MUSTER_TRY(count, gnuHashCount(dynamic(DT_GNU_HASH)));
    } else {
      MUSTER_TRY(count, sectionCount());
    }
    if (count > kMaxTable / sizeof(Elf64_Sym)) return broken(fmt::format("it claims {} symbols", count));
    return count;
  }

  /// The highest symbol of a GNU hash table: the largest bucket's chain, to the entry whose lowest bit is
  /// set.
  [[nodiscard]] Result<uint64_t> gnuHashCount(uint64_t address) const {
    MUSTER_TRY(const uint64_t buckets, wordAt(address, "hash table"));
    MUSTER_TRY(const uint64_t first, wordAt(address + 4, "hash table"));
    MUSTER_TRY(const uint64_t blooms, wordAt(address + 8, "hash table"));
    const uint64_t bucketsAt = address + 16 + blooms * 8;
    if (buckets > kMaxTable / 4 || blooms > kMaxTable / 8) return broken("its hash table is too large");
    MUSTER_TRY(const uint64_t offset, offsetOf(bucketsAt, buckets * 4, "hash table"));
    std::vector<uint32_t> heads(buckets);
    MUSTER_CHECK_OK(read(offset, heads.data(), buckets * 4, "hash table"));
    uint64_t last = heads.empty() ? 0 : *std::max_element(heads.begin(), heads.end());
    if (last < first) return first;
    for (; last < kMaxTable / sizeof(Elf64_Sym); ++last) {
      MUSTER_TRY(const uint32_t word, wordAt(bucketsAt + buckets * 4 + (last - first) * 4, "hash table"));
      if ((word & 1) != 0) return last + 1;
    }
    return broken("its hash table has no end");
  }

  [[nodiscard]] Result<uint64_t> sectionCount() const {
    if (header_.e_shentsize != sizeof(Elf64_Shdr))
      return broken("it has no hash table and no section headers");
    std::vector<Elf64_Shdr> sections(header_.e_shnum);
    MUSTER_CHECK_OK(
        read(header_.e_shoff, sections.data(), sections.size() * sizeof(Elf64_Shdr), "section header table"));
    for (const Elf64_Shdr& s : sections)
      if (s.sh_type == SHT_DYNSYM) return s.sh_size / sizeof(Elf64_Sym);
    return broken("it has no dynamic symbols");
  }

  static bool nameIs(const std::string& names, uint64_t offset, std::string_view wanted) {
    // The terminating zero byte belongs to the comparison: a prefix is another name.
    return offset < names.size() && names.size() - offset > wanted.size() &&
           names.compare(offset, wanted.size(), wanted) == 0 && names[offset + wanted.size()] == '\0';
  }

  [[nodiscard]] Result<std::string> dataOf(const Elf64_Sym& symbol, std::string_view name,
                                           size_t bytes) const {
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT)
      return broken(fmt::format("its symbol {} is not data", name));
    if (symbol.st_size < bytes)
      return broken(fmt::format("its symbol {} has {} bytes, expected {}", name, symbol.st_size, bytes));
    MUSTER_TRY(const uint64_t offset, offsetOf(symbol.st_value, bytes, "plugin information"));
    std::string data(bytes, '\0');
    MUSTER_CHECK_OK(read(offset, data.data(), bytes, "plugin information"));
    return data;
  }

  int fd_;
  std::string path_;
  uint64_t size_ = 0;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::map<int64_t, uint64_t> dynamic_;
};

}  // namespace

Result<std::string> readElfSymbol(int fd, const std::string& path, std::string_view symbol, size_t bytes) {
  Elf elf(fd, path);
  MUSTER_CHECK_OK(elf.load());
  return elf.symbolData(symbol, bytes);
}

}  // namespace muster
