// SPDX-License-Identifier: Apache-2.0
// What tests of importers ask of a text: what it holds, and why it is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runner/import/imported.h"

namespace muster::testing {

inline ImportedFile imported(const std::string& text) {
  auto file = importText(text, "file", "");
  EXPECT_TRUE(file.ok()) << file.error().text();
  return file.ok() ? *file : ImportedFile();
}

inline std::string refusal(const std::string& text, const std::string& format = "") {
  const auto file = importText(text, "file", format);
  EXPECT_FALSE(file.ok()) << text.substr(0, 500);
  return file.ok() ? "" : file.error().text();
}

inline std::vector<Measurement> valuesOf(const ImportedFile& file, const std::string& metric) {
  std::vector<Measurement> found;
  for (const Measurement& m : file.measurements)
    if (m.metric == metric) found.push_back(m);
  return found;
}

inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace muster::testing
