// SPDX-License-Identifier: Apache-2.0
// One level of data for the template.
#pragma once

#include <kainjow/mustache.hpp>
#include <string>
#include <vector>

namespace muster {

/// Names and values for one section of the template. Every name that a section uses is set, also when it is
/// empty: mustache would otherwise look it up in the sections around it.
class View {
 public:
  /// A text, escaped by the template. An empty one counts as absent: `{{#name}}` skips it.
  View& text(const std::string& name, const std::string& value);
  /// Markup made by this program, for `{{{name}}}`.
  View& markup(const std::string& name, const std::string& value);
  View& flag(const std::string& name, bool value);
  /// A section that repeats; `has_<name>` says whether there is any.
  View& list(const std::string& name, std::vector<View> views);
  [[nodiscard]] const kainjow::mustache::data& data() const { return data_; }

 private:
  kainjow::mustache::data data_;
};

/// Bounds what all views hold that this thread makes while it exists: a text that does not fit is an
/// ellipsis, lists lose their last entries. Whatever counts a record multiplies, its page stays of a size.
class PageLimit {
 public:
  explicit PageLimit(size_t bytes);
  ~PageLimit();
  PageLimit(const PageLimit&) = delete;
  PageLimit& operator=(const PageLimit&) = delete;
  /// Whether something did not fit.
  [[nodiscard]] bool isReached() const { return reached_; }

 private:
  friend class View;
  bool take(size_t bytes);
  size_t left_;
  bool reached_ = false;
};

/// A list of views made from each of `items`.
template <typename Items, typename F>
std::vector<View> viewsOf(const Items& items, F make) {
  std::vector<View> views;
  views.reserve(items.size());
  for (const auto& item : items) views.push_back(make(item));
  return views;
}

}  // namespace muster
