// SPDX-License-Identifier: Apache-2.0
// Writes and reads statements, and compares them with a folder.
#include "runner/attest/statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runner/attest/envelope.h"
#include "runner/core/text.h"

namespace muster::attest {
namespace {

constexpr size_t kSumDigits = 8;
constexpr size_t kDigestDigits = 64;
constexpr uint64_t kLargestBlock = 1ull << 50;
constexpr uint64_t kLargestFile = 1ull << 56;
constexpr std::string_view kHexDigits = "0123456789abcdef";

Error invalid(const std::string& problem) {
  return {ErrorCode::kProtocol, problem, "statement"};
}

std::string sumsText(const std::vector<uint32_t>& sums) {
  std::string text;
  for (const uint32_t sum : sums) text += fmt::format("{:08x}", sum);
  return text;
}

/// The files' sizes and block sums, in the order of the subjects.
Json locatorsOf(const std::vector<SignedFile>& files) {
  Json list = Json::array();
  for (const SignedFile& file : files) {
    const BlockSums& blocks = file.sums.blocks;
    list.push_back({{"bytes", blocks.bytes}, {"block", blocks.block}, {"crc32", sumsText(blocks.sums)}});
  }
  return list;
}

Json subjectsOf(const std::vector<SignedFile>& files) {
  Json list = Json::array();
  for (const SignedFile& file : files)
    list.push_back({{"name", file.name}, {"digest", {{"sha256", file.sums.sha256}}}});
  return list;
}

bool isHex(std::string_view text) {
  return text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

Result<SignedFile> fileFromJson(const Json& subject, const std::string& path) {
  SignedFile file;
  JsonReader reader(subject, path);
  reader.read("name", file.name);
  const Json* digest = reader.object("digest");
  MUSTER_CHECK_OK(reader.status());
  JsonReader digests(*digest, path + ".digest");
  digests.read("sha256", file.sums.sha256);
  MUSTER_CHECK_OK(digests.status());
  if (!isNameBelow(file.name) || file.name == kEnvelopeName)
    return invalid(fmt::format("{}.name: \"{}\" is no name of a signed file below the folder", path,
                               printable(file.name, 120)));
  if (file.sums.sha256.size() != kDigestDigits || !isHex(file.sums.sha256))
    return invalid(path + ".digest.sha256: expected 64 hexadecimal digits");
  return file;
}

Status readLocator(const Json& json, const std::string& path, BlockSums& out) {
  std::string sums;
  JsonReader reader(json, path);
  reader.read("bytes", out.bytes);
  reader.read("block", out.block);
  reader.read("crc32", sums);
  MUSTER_CHECK_OK(reader.status());
  const bool sane = out.block > 0 && out.block <= kLargestBlock && out.bytes < kLargestFile &&
                    sums.size() % kSumDigits == 0 && isHex(sums) &&
                    sums.size() / kSumDigits == (out.bytes + out.block - 1) / out.block;
  if (!sane) return invalid(path + ": the block sums are not of a file of this size");
  for (size_t i = 0; i < sums.size(); i += kSumDigits)
    out.sums.push_back(static_cast<uint32_t>(std::stoul(sums.substr(i, kSumDigits), nullptr, 16)));
  return {};
}

/// Reads the predicate; the subjects are there already.
Status readPredicate(const Json& predicate, Statement& out) {
  JsonReader reader(predicate, "statement.predicate");
  const Json* results = reader.array("results");
  size_t next = 0;
  reader.each("files", [&](const Json& item, const std::string& path) -> Status {
    if (next == out.files.size()) return invalid(path + ": there are fewer subjects than files");
    return readLocator(item, path, out.files[next++].sums.blocks);
  });
  MUSTER_CHECK_OK(reader.status());
  if (next != out.files.size()) return invalid("predicate.files: a subject has no entry");
  out.results = *results;
  return {};
}

Status requireType(const std::string& what, const std::string& found, const char* expected) {
  if (found == expected) return {};
  return invalid(fmt::format("{} is \"{}\"; expected \"{}\"", what, printable(found, 80), expected));
}

std::string missingOrUnreadable(const Error& error, const std::string& name) {
  return error.code == ErrorCode::kNotFound ? printable(name) + ": is missing"
                                            : printable(name) + ": " + error.message;
}

/// How a file differs from the signed one; empty: it does not.
std::string differenceOf(const SignedFile& file, const Folder& folder) {
  const auto found = folder.sums(file.name, file.sums.blocks.block, file.sums.blocks.bytes + 1);
  if (!found.ok()) return missingOrUnreadable(found.error(), file.name);
  if (found->sha256 == file.sums.sha256 && found->blocks.bytes == file.sums.blocks.bytes) return "";
  return printable(file.name) + ": " + folder.difference(file.name, file.sums, *found);
}

}  // namespace

std::string statementText(const Statement& statement) {
  return dumpJson(
      Json{{"_type", kStatementType},
           {"subject", subjectsOf(statement.files)},
           {"predicateType", kPredicateType},
           {"predicate", {{"results", statement.results}, {"files", locatorsOf(statement.files)}}}});
}

Result<Statement> parseStatement(std::string_view text) {
  MUSTER_TRY(const Json json, parseJson(text));
  Statement statement;
  std::string type, predicateType;
  JsonReader reader(json, "statement");
  reader.read("_type", type);
  reader.read("predicateType", predicateType);
  MUSTER_CHECK_OK(reader.status());
  MUSTER_CHECK_OK(requireType("_type", type, kStatementType));
  MUSTER_CHECK_OK(requireType("predicateType", predicateType, kPredicateType));
  reader.each("subject", [&](const Json& item, const std::string& path) -> Status {
    MUSTER_TRY(SignedFile file, fileFromJson(item, path));
    if (!statement.files.empty() && file.name <= statement.files.back().name)
      return invalid(path + ".name: stands twice, or is not in order");
    statement.files.push_back(std::move(file));
    return {};
  });
  const Json* predicate = reader.object("predicate");
  MUSTER_CHECK_OK(reader.status());
  MUSTER_CHECK_OK(readPredicate(*predicate, statement));
  if (const size_t at = firstDifference(text, statementText(statement)); at != std::string_view::npos)
    return invalid(fmt::format("byte {} is not as `muster sign` writes it", at));
  return statement;
}

Result<Statement> statementOf(const Folder& folder, const FolderList& list, Json results) {
  Statement statement;
  statement.results = std::move(results);
  for (const FolderFile& file : list.files) {
    if (validUtf8(file.name) != file.name)
      return Error{ErrorCode::kUsage, "the name of this file is not UTF-8; rename it", printable(file.name)};
    MUSTER_TRY(FileSums sums, folder.sums(file.name, blockSizeFor(file.bytes), file.bytes + 1));
    if (sums.blocks.bytes != file.bytes)
      return Error{ErrorCode::kUsage, "changed while it was read; sign the folder of a run that has ended",
                   file.name};
    statement.files.push_back({file.name, std::move(sums)});
  }
  return statement;
}

std::vector<std::string> fileDifferences(const Statement& statement, const Folder& folder,
                                         const FolderList& list) {
  std::vector<std::string> lines;
  for (const SignedFile& file : statement.files)
    if (std::string line = differenceOf(file, folder); !line.empty()) lines.push_back(std::move(line));
  for (const FolderFile& file : list.files) {
    const bool known =
        std::binary_search(statement.files.begin(), statement.files.end(), SignedFile{file.name, {}},
                           [](const SignedFile& a, const SignedFile& b) { return a.name < b.name; });
    if (!known) lines.push_back(printable(file.name) + ": is not signed: it was added");
  }
  return lines;
}

}  // namespace muster::attest
