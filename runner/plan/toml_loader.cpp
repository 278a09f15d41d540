// SPDX-License-Identifier: Apache-2.0
// A TOML plan as a document. The parser itself is shared with the SKU profiles:
// runner/core/toml/toml_document.h.
#include <charconv>

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

SourcePosition positionFrom(std::string where) {
  SourcePosition at;
  at.column = takeNumber(where);
  at.line = takeNumber(where);
  at.file = std::move(where);
  return at;
}

void addPlaces(const TomlDocument& parsed, const std::string& pointer, const Json& value, PlanDocument& out) {
  const TextPosition at = parsed.position(pointer);
  out.places[pointer] = {out.file, at.line, at.column};
  if (!value.is_structured()) return;
  size_t index = 0;
  for (const auto& item : value.items())
    addPlaces(parsed, pointerTo(pointer, value.is_array() ? std::to_string(index++) : item.key()),
              item.value(), out);
}

}  // namespace

std::optional<PlanDocument> loadToml(std::string_view text, const std::string& file,
                                     Diagnostics& diagnostics) {
  auto parsed = TomlDocument::parse(text, file);
  if (!parsed.ok()) {
    diagnostics.error(positionFrom(parsed.error().where), parsed.error().message);
    return std::nullopt;
  }
  PlanDocument document;
  document.file = file;
  addPlaces(*parsed, "", parsed->root(), document);
  document.root = parsed->root();
  return document;
}

}  // namespace muster
