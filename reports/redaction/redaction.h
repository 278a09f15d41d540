// SPDX-License-Identifier: Apache-2.0
// Redaction: names, serials, addresses and users in records replaced by pseudonyms, the same in all records.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/redaction/matcher.h"
#include "runner/core/result.h"
#include "runner/record/record.h"

namespace muster {

/// What can be replaced. Words are those that the user names.
enum class Secret { kHost, kSerial, kAddress, kUser, kWord };
constexpr std::array<const char*, 5> namesOf(Secret) {
  return {"host", "serial", "address", "user", "word"};
}

/// The values that are replaced, in whatever letters and writing, and their pseudonyms. First collect() all
/// records, then name(), then apply().
class Redaction {
 public:
  explicit Redaction(std::set<Secret> rules) : rules_(std::move(rules)) {}

  /// The pseudonyms of an earlier redaction; toJson() wrote them. Its words are replaced only once they are
  /// added again, by the same pseudonyms.
  Status take(const Json& map);
  void addWord(const std::string& word) { add(Secret::kWord, word); }
  /// Finds the values in a record: its node and those of its groups, serials, UUIDs and machine ids of the
  /// inventory, IP and MAC addresses, approvers of waivers, users of home directories and URLs.
  void collect(const Record& record);
  /// Gives each new value a pseudonym: "host0001".
  Status name();
  /// The record without those values, marked as redacted from the one with the digest `sha256`. Digests of
  /// texts that changed and its run id are computed anew; its MAC is left out. An error where a value stands
  /// that the record cannot be read without.
  Result<Record> apply(const Record& record, const std::string& sha256) const;
  /// The first value that stands in `text`; empty: none does.
  [[nodiscard]] std::string leftIn(std::string_view text) const;
  [[nodiscard]] Json toJson() const;
  /// How many words of the map were not added again, so are not replaced.
  [[nodiscard]] size_t wordsLeftOut() const;

 private:
  void add(Secret secret, const std::string& value);
  void addHost(const std::string& host);
  void addListedHost(const std::string& host);
  void collectTexts(const Json& value, const std::string& key);
  void addUser(const std::string& user);
  void collectUsers(const std::string& text);
  /// `named`: its keys are names, too.
  [[nodiscard]] Json replaced(const Json& value, bool named) const;
  [[nodiscard]] std::string leftIn(const Json& value, bool named) const;
  [[nodiscard]] std::string replaced(const std::string& text) const;
  [[nodiscard]] std::string expanded(const std::string& text) const;
  struct Name {
    std::string written;    ///< as it was first seen
    std::string pseudonym;  ///< empty until name()
    Secret kind = Secret::kWord;
    std::string same;    ///< the key of the value of which this is another writing; empty: of none
    bool given = false;  ///< not a word that only the map has
  };
  using Names = std::map<std::string, Name, std::less<>>;
  /// The name of `value`, whatever its writing; a new one if it was not known.
  Name& nameFor(Secret kind, const std::string& value);
  [[nodiscard]] const Name& mainOf(const Name& name) const;
  /// Whether `value`, in small letters, is to be replaced.
  [[nodiscard]] bool isReplaced(std::string_view value) const;

  /// The hosts of a list. Beyond the bounds, name() or apply() fails.
  [[nodiscard]] Result<std::vector<std::string>> hostsOf(std::string_view list) const;
  static Error tooManyListed();

  static constexpr size_t kMostListed = 64 << 20;  ///< bytes that the lists of one record grow by
  static constexpr size_t kMostKept = 8 << 20;     ///< bytes of hosts that lists added to names_
  mutable uint64_t listed_ = 0;
  size_t kept_ = 0;
  bool tooMany_ = false;  ///< in the records that were collected
  std::set<Secret> rules_;
  Names names_;                    ///< by the value in small letters
  std::set<std::string> devices_;  ///< ids such as "gpu3", which are no names of hosts
  Matcher matcher_;                ///< of the values that are replaced
};

}  // namespace muster
