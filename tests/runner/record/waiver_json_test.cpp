// SPDX-License-Identifier: Apache-2.0
// The waivers in a record: they come back as they were written, and a torn one is named.
#include "runner/record/waiver_json.h"

#include <gtest/gtest.h>

#include "runner/system/files.h"
#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {
namespace {

Record waivedRecord() {
  Record record = sickRecord();
  record.waiverFile = {"", "waivers.toml", sha256Hex("schema = 1"), "schema = 1"};
  record.waivers = {{"gemm",
                     "compute.gemm_throughput",
                     {{"dtype", "bf16"}},
                     "gpu3",
                     "S3",
                     "n17",
                     "riser on order",
                     "J. Doe",
                     "2026-12-31",
                     "waivers.toml:3:1",
                     WaiverState::kApplied,
                     2,
                     "covers 2 failures"}};
  return record;
}

TEST(WaiverJson, ComesBackAsItWasWritten) {
  const Record record = waivedRecord();
  const auto json = parseJson(recordText(record));
  ASSERT_TRUE(json.ok());
  const auto back = recordFromJson(*json);
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(recordText(*back), recordText(record));
  ASSERT_EQ(back->waivers.size(), 1u);
  EXPECT_EQ(back->waivers[0].where, record.waivers[0].where);
  EXPECT_EQ(back->waivers[0].covered, 2u);
}

TEST(WaiverJson, IsAbsentWhereNoFileWasGiven) {
  EXPECT_FALSE(toJson(sickRecord()).contains("waivers"));
}

TEST(WaiverJson, NamesWhatIsMissing) {
  Json json = toJson(waivedRecord());
  json["waivers"]["list"][0].erase("approver");
  const auto record = recordFromJson(json);
  ASSERT_FALSE(record.ok());
  EXPECT_NE(record.error().text().find("waivers.list[0]"), std::string::npos) << record.error().text();
  EXPECT_NE(record.error().text().find("approver"), std::string::npos) << record.error().text();
}

TEST(WaiverJson, RefusesADigestThatIsNone) {
  Json json = toJson(waivedRecord());
  json["waivers"]["sha256"] = "";
  EXPECT_FALSE(recordFromJson(json).ok());
}

}  // namespace
}  // namespace muster::testing
