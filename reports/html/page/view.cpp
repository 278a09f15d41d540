// SPDX-License-Identifier: Apache-2.0
// Stores the values of one template level and escapes texts.
#include "reports/html/page/view.h"

#include <utility>

namespace muster {

using Data = kainjow::mustache::data;

namespace {

constexpr size_t kEntryCost = 32;  // of a name and its markup
constexpr size_t kViewCost = 64;

thread_local PageLimit* limitOfPage = nullptr;

}  // namespace

PageLimit::PageLimit(size_t bytes) : left_(bytes) {
  limitOfPage = this;
}

PageLimit::~PageLimit() {
  limitOfPage = nullptr;
}

bool PageLimit::take(size_t bytes) {
  const bool fits = bytes <= left_;
  if (fits)
    left_ -= bytes;
  else
    reached_ = true;
  return fits;
}

View& View::text(const std::string& name, const std::string& value) {
  if (value.empty())
    data_[name] = Data(false);
  else
    data_[name] =
        limitOfPage == nullptr || limitOfPage->take(value.size() + kEntryCost) ? Data(value) : Data("…");
  return *this;
}

View& View::markup(const std::string& name, const std::string& value) {
  return text(name, value);
}

View& View::flag(const std::string& name, bool value) {
  data_[name] = Data(value);
  return *this;
}

View& View::list(const std::string& name, std::vector<View> views) {
  kainjow::mustache::list items;
  items.reserve(views.size());
  for (auto& view : views) {
    if (limitOfPage != nullptr && !limitOfPage->take(kViewCost)) break;
    items.push_back(std::move(view.data_));
  }
  data_[name] = Data(items);
  return flag("has_" + name, !items.empty());
}

}  // namespace muster
