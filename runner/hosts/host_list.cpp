// SPDX-License-Identifier: Apache-2.0
// See host_list.h. Grammar: items separated by commas; an item is text with any number of [ranges] in it.
#include "runner/hosts/host_list.h"

#include <fmt/format.h>

#include <cstdint>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMaxName = 253;  // of a DNS name
constexpr size_t kMaxDigits = 9;
constexpr size_t kMaxList = 1 << 20;

class HostListReader {
 public:
  explicit HostListReader(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> read() {
    if (text_.empty()) return fail("it is empty");
    if (text_.size() > kMaxList) return fail(fmt::format("it has {} characters", text_.size()));
    while (true) {
      MUSTER_CHECK_OK(item());
      if (at_ == text_.size()) return std::move(hosts_);
      ++at_;  // the comma
    }
  }

 private:
  /// One name with its brackets: the product of all of them, the last varying fastest.
  Status item() {
    std::vector<std::string> names{""};
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      const char c = text_[at_];
      if (c == '[') {
        MUSTER_TRY(const std::vector<std::string> choices, brackets());
        MUSTER_TRY(names, product(names, choices));
        continue;
      }
      if (c == ']') return fail("\"]\" without \"[\"");
      if (static_cast<unsigned char>(c) <= ' ' || c == '\x7f')
        return fail("a character that is not valid in host names");
      if (names.front().size() >= kMaxName) return fail("a host name that is too long");
      for (std::string& name : names) name += c;
      ++at_;
    }
    if (at_ == begin) return fail("a host name is missing");
    return keep(names);
  }

  Status keep(const std::vector<std::string>& names) {
    if (hosts_.size() + names.size() > kMaxHosts) return fail(fmt::format("more than {} hosts", kMaxHosts));
    for (const std::string& name : names)
      if (name.size() > kMaxName) return fail(fmt::format("a host name of {} characters", name.size()));
    hosts_.insert(hosts_.end(), names.begin(), names.end());
    return {};
  }

  Result<std::vector<std::string>> product(const std::vector<std::string>& names,
                                           const std::vector<std::string>& choices) const {
    if (names.size() * choices.size() > kMaxHosts) return fail(fmt::format("more than {} hosts", kMaxHosts));
    if (names.front().size() > kMaxName) return fail("a host name that is too long");
    std::vector<std::string> all;
    all.reserve(names.size() * choices.size());
    for (const std::string& name : names)
      for (const std::string& choice : choices) all.push_back(name + choice);
    return all;
  }

  /// "[1-3,007]": what each of its numbers reads like.
  Result<std::vector<std::string>> brackets() {
    std::vector<std::string> choices;
    do {
      ++at_;  // the bracket or the comma
      MUSTER_CHECK_OK(range(choices));
    } while (at_ < text_.size() && text_[at_] == ',');
    if (at_ == text_.size() || text_[at_] != ']') return fail("expected \",\" or \"]\"");
    ++at_;
    return choices;
  }

  Status range(std::vector<std::string>& choices) {
    MUSTER_TRY(const std::string_view first, digits());
    std::string_view last = first;
    if (at_ < text_.size() && text_[at_] == '-') {
      ++at_;
      MUSTER_TRY(last, digits());
    }
    const uint32_t from = number(first), to = number(last);
    if (to < from) return fail(fmt::format("the range {}-{} runs backwards", first, last));
    if (choices.size() + (to - from) + 1 > kMaxHosts)
      return fail(fmt::format("more than {} hosts", kMaxHosts));
    // Leading zeros are part of the names: 008-010 is 008, 009, 010.
    for (uint32_t i = from; i <= to; ++i) choices.push_back(fmt::format("{:0{}}", i, first.size()));
    return {};
  }

  Result<std::string_view> digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == begin) return fail("expected a number");
    if (at_ - begin > kMaxDigits) return fail(fmt::format("a number of {} digits", at_ - begin));
    return text_.substr(begin, at_ - begin);
  }

  static uint32_t number(std::string_view digits) {
    uint32_t value = 0;
    for (const char c : digits) value = value * 10 + static_cast<uint32_t>(c - '0');
    return value;
  }

  [[nodiscard]] Error fail(const std::string& what) const {
    return {ErrorCode::kUsage,
            fmt::format("host list \"{}\", column {}: {}; expected names such as gpu[001-003,7]-ib,login",
                        printable(text_, 120), at_ + 1, what),
            ""};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<std::string> hosts_;
};

}  // namespace

Result<std::vector<std::string>> expandHostList(std::string_view list) {
  return HostListReader(list).read();
}

}  // namespace muster
