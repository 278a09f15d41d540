// SPDX-License-Identifier: Apache-2.0
// Labels of a measurement or verdict while it is read: views into the record, in order.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reports/fleet/read/dom_fields.h"
#include "runner/metrics/measurement.h"

namespace muster::fleet {

/// Appends `part` to a key so that no other list of parts gives the same key.
inline void appendPart(std::string& key, std::string_view part) {
  const auto size = static_cast<uint32_t>(part.size());
  key.append(reinterpret_cast<const char*>(&size), sizeof size);
  key.append(part);
}

/// Label names and values by name; views into the parsed record.
class LabelList {
 public:
  using Names = std::initializer_list<std::string_view>;
  static constexpr size_t kMost = 64;  ///< of one measurement; more is an error, as is one beyond all bounds

  simdjson::error_code read(const dom::element& element) {
    dom::object object;
    if (const auto error = element.get(object); error != simdjson::SUCCESS) return error;
    for (const auto& [key, value] : object) {
      std::string_view text;
      if (const auto error = value.get(text); error != simdjson::SUCCESS) return error;
      if (labels_.size() == kMost || key.size() + text.size() > kMostNameBytes) return simdjson::CAPACITY;
      labels_.emplace_back(key, text);
    }
    std::sort(labels_.begin(), labels_.end());
    return simdjson::SUCCESS;
  }
  /// Appends all but those named `left` to a key.
  void append(std::string& key, Names left) const {
    for (const auto& [name, value] : labels_) {
      if (std::find(left.begin(), left.end(), name) != left.end()) continue;
      appendPart(key, name);
      appendPart(key, value);
    }
  }
  /// Of all names and values.
  [[nodiscard]] size_t bytes() const {
    size_t sum = 0;
    for (const auto& [name, value] : labels_) sum += name.size() + value.size();
    return sum;
  }
  /// What they cost where they are kept as Labels: two texts and a place in a map for each.
  [[nodiscard]] size_t keptBytes() const { return bytes() + labels_.size() * kKeptLabel; }
  [[nodiscard]] size_t size() const { return labels_.size(); }
  /// The value of the label `name`, or nothing.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const {
    const auto at =
        std::find_if(labels_.begin(), labels_.end(), [&](const auto& l) { return l.first == name; });
    return at == labels_.end() ? std::nullopt : std::optional(at->second);
  }
  /// All of another list are here, with its values. `device` stands for a label that is left out where it
  /// only repeats the device; empty: it does not.
  [[nodiscard]] bool match(const LabelList& where, std::string_view device) const {
    return std::all_of(where.labels_.begin(), where.labels_.end(), [&](const auto& wanted) {
      const auto own = find(wanted.first);
      return own ? *own == wanted.second
                 : wanted.first == "device" && !device.empty() && device == wanted.second;
    });
  }
  bool operator==(const LabelList& other) const = default;
  /// All but those named `left`.
  [[nodiscard]] Labels without(Names left) const {
    Labels labels;
    for (const auto& [name, value] : labels_)
      if (std::find(left.begin(), left.end(), name) == left.end()) labels.emplace(name, value);
    return labels;
  }

 private:
  static constexpr size_t kKeptLabel = sizeof(Labels::value_type) + 48;  ///< with what allocators add
  std::vector<std::pair<std::string_view, std::string_view>> labels_;
};

}  // namespace muster::fleet
