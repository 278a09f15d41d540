// SPDX-License-Identifier: Apache-2.0
// Stores the values of one template level and escapes texts.
#include "reports/html/page/view.h"

#include <utility>

namespace muster {

using Data = kainjow::mustache::data;

View& View::text(const std::string& name, const std::string& value) {
  data_[name] = value.empty() ? Data(false) : Data(value);
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
  for (auto& view : views) items.push_back(std::move(view.data_));
  data_[name] = Data(items);
  return flag("has_" + name, !items.empty());
}

}  // namespace muster
