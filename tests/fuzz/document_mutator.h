// SPDX-License-Identifier: Apache-2.0
// Changes documents field by field, the same way for the same seed everywhere. Bytes at random are refused by
// the parser nearly always; these get past it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/json.h"

namespace muster::testing {

/// How a document is written.
enum class DocumentFormat { kJson, kJsonLines, kToml };

/// `document` as text. A key that ends in U+0001 is written without it: so one key can stand twice. Lines of
/// kJsonLines are the items of a list.
std::string documentText(const Json& document, DocumentFormat format);

/// Makes broken variants of valid documents: fields are deleted, retyped, duplicated, reordered, nested,
/// enlarged, truncated, renamed and exchanged.
class DocumentMutator {
 public:
  DocumentMutator(std::vector<Json> documents, DocumentFormat format, uint64_t seed)
      : documents_(std::move(documents)), format_(format), state_(seed * 2 + 1) {}

  /// One of the documents, changed in one to three places.
  std::string next();

 private:
  uint64_t random();
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random() % bound); }
  /// A structured value with at least one member, chosen level by level; the document itself at the latest.
  Json& parentIn(Json& document);
  const Json& anyValue();
  Json oddValue();
  void change(Json& document);
  void changeMembers(Json& parent, size_t at);
  void changeValue(Json& value);
  void enlarge(Json& value);

  std::vector<Json> documents_;
  DocumentFormat format_;
  uint64_t state_;
};

}  // namespace muster::testing
