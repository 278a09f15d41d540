// SPDX-License-Identifier: Apache-2.0
// The clause matrix of report.html: linked to stages, open about gaps, and nobody's markup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/html/html.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string pageWith(const std::string& clauses) {
  const testing::TemplatesFolder templates;
  AcceptanceDocument document;
  auto read = parseRequirements("schema = 1\nname = \"<b>annex\"\n" + clauses, "r.toml");
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().text());
  if (read.ok()) document.requirements = *std::move(read);
  auto html = renderHtml(testing::healthyRecord(), "digest", templates.path(), document);
  EXPECT_TRUE(html.ok()) << (html.ok() ? "" : html.error().text());
  return html.ok() ? *std::move(html) : "";
}

TEST(ClauseView, LinksEvidenceAndNamesGaps) {
  const std::string page = pageWith(
      "[[clause]]\nid = \"4.2\"\nrequirement = \"a rate\"\nstages = [\"gemm\"]\n"
      "[[clause]]\nid = \"4.3\"\nrequirement = \"a link\"\nmetrics = [\"rdma.write_bandwidth\"]\n");
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">4.2</th>"));
  EXPECT_THAT(page, HasSubstr(">gemm</a> <small>"));
  EXPECT_THAT(page, HasSubstr("nothing of rdma.write_bandwidth"));
  EXPECT_THAT(page, HasSubstr("Stages that are evidence for no clause: "));
}

TEST(ClauseView, ShowsEveryTextAsText) {
  const std::string page = pageWith(
      "[[clause]]\nid = \"<img src=x>\"\nrequirement = \"</td><script>\"\nsource = \"{{{style}}}\"\n"
      "metrics = [\"<i>.b\"]\n");
  for (const char* markup : {"<img", "</td><script>", "<b>annex", "<i>.b"})
    EXPECT_THAT(page, Not(HasSubstr(markup)));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x&gt;"));
}

TEST(ClauseView, IsAbsentWithoutRequirements) {
  const testing::TemplatesFolder templates;
  const auto html = renderHtml(testing::healthyRecord(), "digest", templates.path(), {});
  ASSERT_TRUE(html.ok());
  EXPECT_THAT(*html, Not(HasSubstr("id=\"clauses\"")));
}

}  // namespace
}  // namespace muster
