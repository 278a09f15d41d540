// SPDX-License-Identifier: Apache-2.0
// The text of describe(), from the tests of a plugin. Written as text at once: every run asks for it.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace muster::sdk {

template <typename T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

using Names = std::vector<std::string>;

/// One JSON object, written member by member.
class ObjectText {
 public:
  /// A text, a list of texts, a number, true or false.
  template <typename T>
  void add(std::string_view key, const T& value) {
    addJson(key, "");
    write(value);
  }
  /// A value that is JSON already.
  void addJson(std::string_view key, std::string_view json) {
    text_ += text_.empty() ? '{' : ',';
    write(key);
    text_ += ':';
    text_ += json;
  }
  [[nodiscard]] std::string text() const { return text_ + "}"; }

 private:
  void write(std::string_view text) {
    constexpr const char* kDigits = "0123456789abcdef";
    text_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) >= 0x20)
        text_ += c;
      else
        text_ += {'\\', 'u', '0', '0', kDigits[c >> 4], kDigits[c & 15]};
    }
    text_ += '"';
  }
  void write(std::same_as<bool> auto value) { text_ += value ? "true" : "false"; }
  void write(WholeNumber auto value) { text_ += std::to_string(value); }
  void write(double value) {
    char digits[32];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
  void write(const Names& names) {
    text_ += '[';
    for (size_t i = 0; i < names.size(); ++i) {
      if (i > 0) text_ += ',';
      write(std::string_view(names[i]));
    }
    text_ += ']';
  }

  std::string text_;
};

/// One test as describe() declares it.
struct TestInfo {
  std::string name;
  std::string summary;
  Names backends;       ///< of host, sim and cuda
  Names scopes;         ///< of device, node and cluster
  std::string params;   ///< JSON: describeParams<Params>() of sdk/params.h, or "[]"
  std::string metrics;  ///< JSON: a list as plugins/abi/README.md describes it
};

inline std::string describe(const std::vector<TestInfo>& tests) {
  std::string list;
  for (const TestInfo& test : tests) {
    ObjectText object;
    object.add("name", test.name);
    object.add("summary", test.summary);
    object.add("backends", test.backends);
    object.add("scopes", test.scopes);
    object.addJson("params", test.params);
    object.addJson("metrics", test.metrics);
    list += (list.empty() ? "" : ",") + object.text();
  }
  return "{\"tests\":[" + list + "]}";
}

}  // namespace muster::sdk
