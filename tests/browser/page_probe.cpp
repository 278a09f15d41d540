// SPDX-License-Identifier: Apache-2.0
// Opens pages in one browser and prints what axe-core finds in each, what each requested and what it logged.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "runner/system/files.h"
#include "tests/browser/browser.h"

namespace muster::testing {
namespace {

/// A way of looking at a page. Dark and narrow together: colours do not depend on the width.
struct Look {
  const char* name;
  const char* scheme;
  int width;
};
constexpr Look kLooks[] = {{"light, 1280 px", "light", 1280}, {"dark, 390 px", "dark", 390}};

/// Unfolds everything and keeps two of whatever looks alike: a page has thousands of cells, and axe-core
/// takes its time for each.
constexpr char kPrepare[] = R"((() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  const seen = new Map();
  for (const part of document.querySelectorAll("tr, figure, li, .rack > a, dl > div")) {
    const inside = Array.from(part.querySelectorAll("*"), (e) => e.tagName + e.getAttribute("class"));
    const looks = [part.tagName, part.parentElement.className, part.className, ...inside].join();
    seen.set(looks, (seen.get(looks) || 0) + 1);
    if (seen.get(looks) > 2) part.remove();
  }
})())";

constexpr char kFindings[] =
    "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(rule => "
    "`${rule.id}: ${rule.help}: ${rule.nodes.length} times, first ${rule.nodes[0].html.slice(0, 200)} "
    "${rule.nodes[0].failureSummary}`.replace(/\\s+/g, ' ')))";

void printAll(const std::string& page, const char* look, const char* kind,
              const std::vector<std::string>& found) {
  for (const auto& text : found) fmt::print("{} ({}): {}: {}\n", page, look, kind, text);
}

void probe(Browser& browser, const std::string& axe, const std::string& page) {
  browser.open(page);
  browser.evaluate(kPrepare);
  const PageActivity activity = browser.activity();
  for (const auto& found : {activity.requests, activity.messages, activity.dialogs})
    printAll(page, "opened", "not quiet", found);
  browser.evaluate(axe);
  for (const Look& look : kLooks) {
    browser.command(
        "Emulation.setEmulatedMedia",
        {{"features", Json::array({{{"name", "prefers-color-scheme"}, {"value", look.scheme}}})}});
    browser.command(
        "Emulation.setDeviceMetricsOverride",
        {{"width", look.width}, {"height", 900}, {"deviceScaleFactor", 1}, {"mobile", look.width < 500}});
    printAll(page, look.name, "axe", browser.evaluate(kFindings).get<std::vector<std::string>>());
    if (browser.evaluate("document.documentElement.scrollWidth > innerWidth").get<bool>())
      printAll(page, look.name, "layout", {"scrolls sideways"});
  }
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  using namespace muster;
  try {
    const auto axe = readFile(argc > 1 ? argv[1] : "");
    if (!axe.ok() || argc < 3) throw std::runtime_error("usage: page-probe AXE.js PAGE...");
    testing::Browser browser;
    for (int i = 2; i < argc; ++i) testing::probe(browser, *axe, argv[i]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "page-probe: {}\n", error.what());
    return 4;
  }
}
