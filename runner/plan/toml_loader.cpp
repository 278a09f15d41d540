// SPDX-License-Identifier: Apache-2.0
// A TOML plan as a document. The parser itself is shared with the SKU profiles:
// runner/core/toml/toml_document.h.
#include <charconv>
#include <utility>

#include "runner/core/toml/toml_document.h"
#include "runner/plan/loader.h"

namespace muster {
namespace {

/// Takes ":12" off the end of `text`; 0 when there is none.
int takeNumber(std::string& text) {
  const size_t colon = text.rfind(':');
  int number = 0;
  if (colon == std::string::npos) return 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc() || stop != end) return 0;
  text.resize(colon);
  return number;
}

}  // namespace

SourcePosition positionFrom(std::string where) {
  SourcePosition at;
  at.column = takeNumber(where);
  at.line = takeNumber(where);
  if (at.line == 0) std::swap(at.line, at.column);
  at.file = std::move(where);
  return at;
}

void addTomlPlaces(const TomlDocument& parsed, const std::string& pointer, const Json& value,
                   PlanDocument& out) {
  const TextPosition at = parsed.position(pointer);
  out.places[pointer] = {parsed.fileAt(pointer), at.line, at.column};
  if (!value.is_structured()) return;
  size_t index = 0;
  for (const auto& item : value.items())
    addTomlPlaces(parsed, pointerTo(pointer, value.is_array() ? std::to_string(index++) : item.key()),
                  item.value(), out);
}

std::optional<PlanDocument> loadToml(InputText& input, Diagnostics& diagnostics) {
  auto parsed = readTomlInput(input);
  if (!parsed.ok()) {
    diagnostics.error(positionFrom(parsed.error().where), parsed.error().message);
    return std::nullopt;
  }
  PlanDocument document;
  document.file = input.nameOf("");
  addTomlPlaces(*parsed, "", parsed->root(), document);
  document.root = parsed->root();
  return document;
}

}  // namespace muster
