// SPDX-License-Identifier: Apache-2.0
// Fills the templates of report.html.
#include "reports/html/html.h"

#include "reports/html/page/csp.h"
#include "reports/html/page_one/page_one.h"
#include "reports/html/sections.h"
#include "runner/record/markup.h"
#include "runner/system/files.h"

namespace muster {
namespace {

constexpr uint64_t kMaxTemplateBytes = 4ull << 20;
constexpr size_t kMostPageBytes = 64u << 20;  ///< real pages have up to some MB

/// The files a report is made of.
struct Template {
  std::string page;
  std::string style;
  std::string script;
  std::string schema;
};

Result<Template> loadTemplate(const std::filesystem::path& folder) {
  Template parts;
  MUSTER_TRY(parts.page, readFile(folder / "report" / "report.mustache", kMaxTemplateBytes));
  MUSTER_TRY(parts.style, readFile(folder / "report" / "report.css", kMaxTemplateBytes));
  MUSTER_TRY(const std::string common, readFile(folder / "common" / "page.js", kMaxTemplateBytes));
  MUSTER_TRY(const std::string own, readFile(folder / "report" / "report.js", kMaxTemplateBytes));
  parts.script = common + own;
  MUSTER_TRY(parts.schema, readFile(folder / "record.schema.json", kMaxTemplateBytes));
  // Either would end its element early and make the digest name other bytes than the browser sees.
  for (const auto* inlined : {&parts.style, &parts.script})
    if (inlined->find("</") != std::string::npos || inlined->find('\r') != std::string::npos)
      return Error{ErrorCode::kUnsupported,
                   "report.css, report.js and common/page.js must hold neither \"</\" nor carriage returns",
                   (folder / "report").string()};
  return parts;
}

View pageView(const Record& record, const std::string& digest, const Template& parts,
              const AcceptanceDocument& document) {
  View page;
  Sources sources;
  const std::string style = parts.style + printHead(record, digest);
  page.markup("style", style).markup("script", parts.script).text("digest", digest);
  page.markup("csp", contentSecurityPolicy(style, parts.script));
  addDocument(page, record, document);
  addVerdict(page, record);
  addCategories(page, record);
  addPunchList(page, record, document);
  addParts(page, record, document);
  addDeviations(page, record, sources);
  addClauses(page, record, document);
  addScorecard(page, record);
  addStages(page, record, sources);
  addNotJudged(page, record, sources);
  addWaivers(page, record, sources);
  addInventory(page, record);
  addMethod(page, record);
  addSources(page, sources);
  addProvenance(page, record, digest, parts.schema);
  return page;
}

View boundedView(const Record& record, const std::string& digest, const Template& parts,
                 const AcceptanceDocument& document) {
  bool isCut = false;
  View page;
  {
    const PageLimit limit(kMostPageBytes);
    page = pageView(record, digest, parts, document);
    isCut = limit.isReached();
  }
  page.text("page_cut",
            isCut ? "This page is cut where a … stands or a list ends; record.json has all." : "");
  return page;
}

}  // namespace

Result<std::string> renderHtml(const Record& record, const std::string& digest,
                               const std::filesystem::path& templates, const AcceptanceDocument& document) {
  auto parts = loadTemplate(templates);
  if (!parts.ok()) return std::move(parts).error().context("loading the report template");
  kainjow::mustache::mustache page(parts->page);
  if (!page.is_valid())
    return Error{ErrorCode::kUnsupported, "the report template is damaged: " + page.error_message(),
                 (templates / "report" / "report.mustache").string()};
  page.set_custom_escape([](const std::string& text) { return escapeMarkup(text); });
  std::string html = page.render(boundedView(record, digest, *parts, document).data());
  if (!page.is_valid())
    return Error{ErrorCode::kInternal, "rendering the report: " + page.error_message(), templates.string()};
  return html;
}

}  // namespace muster
