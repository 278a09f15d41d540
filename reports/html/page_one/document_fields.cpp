// SPDX-License-Identifier: Apache-2.0
// Fields of the document line and the signatures.
#include "reports/html/page_one/document_fields.h"

#include <fmt/format.h>

#include "runner/core/clock.h"
#include "runner/core/text.h"

namespace muster {
namespace {

/// "2026-11-22 02:17".
std::string minuteText(double time) {
  std::string text = formatUtc(time).substr(0, 16);
  if (text.size() > 10) text[10] = ' ';
  return text;
}

}  // namespace

View fieldView(const std::string& name, const std::string& value) {
  View view;
  view.text("name", name).text("value", printable(value, kLongestText)).flag("blank", value.empty());
  return view;
}

std::string numberText(const AcceptanceDocument& document) {
  return pairText(document.number, document.revision.empty() ? "" : "rev. " + document.revision);
}

std::string pairText(const std::string& a, const std::string& b) {
  return a + (a.empty() || b.empty() ? "" : ", ") + b;
}

std::string windowText(double started, double finished) {
  if (!(started > 0)) return "";
  const std::string begin = minuteText(started), end = minuteText(finished);
  const bool sameDay = begin.substr(0, 10) == end.substr(0, 10) && end.size() > 11;
  return fmt::format("{} to {} UTC", begin, sameDay ? end.substr(11) : end);
}

void addSigners(View& page, const AcceptanceDocument& document) {
  page.text("exclusions", join(document.exclusions, "; ")).text("document_sha256", document.sha256);
  page.list("signers", {fieldView("Supplier", document.supplier), fieldView("Customer", document.customer),
                        fieldView("Witness", document.witness)});
}

}  // namespace muster
