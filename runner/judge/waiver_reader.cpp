// SPDX-License-Identifier: Apache-2.0
// Reads a waiver file from its text. The format is described in plans/README.md. See waivers.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "runner/core/text.h"
#include "runner/core/toml/toml_table.h"
#include "runner/judge/waivers.h"

namespace muster {
namespace {

constexpr int64_t kSecondsOfDay = 86400;

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level
/// date algorithms").
int64_t daysSince1970(int year, int month, int day) {
  const int64_t y = year - (month <= 2 ? 1 : 0);
  const int64_t era = y / 400;
  const int64_t yearOfEra = y - era * 400;
  const int64_t dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
  return era * 146097 + dayOfEra - 719468;
}

int daysOfMonth(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays[static_cast<size_t>(month) - 1];
}

/// Reads digits [at, at + count) of `text`; -1 if one is no digit.
int digits(const std::string& text, size_t at, size_t count) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, value);
  const bool whole = error == std::errc() && end == text.data() + at + count && text[at] != '-';
  return whole ? value : -1;
}

/// The second at which the day "2026-12-31" has ended, UTC; negative when it is no date.
int64_t endOfDay(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return -1;
  const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > daysOfMonth(year, month)) return -1;
  return (daysSince1970(year, month, day) + 1) * kSecondsOfDay;
}

/// Reads, or describes, one document.
class Reader {
 public:
  Reader(const TomlDocument& document, double now) : document_(document), now_(now) {}

  std::vector<Waiver> read(TomlTable& root) {
    root.schemaVersion("waivers");
    root.require("waiver");
    std::vector<TomlTable> tables = root.tables("waiver");
    if (tables.size() > kMostWaivers)
      root.complain("waiver", fmt::format("{} waivers, more than {}: split the file by node", tables.size(),
                                          kMostWaivers));
    else
      for (TomlTable& table : tables) readOne(table);
    root.finish();
    return std::move(waivers_);
  }

 private:
  void readOne(TomlTable& table) {
    Waiver waiver;
    waiver.at = document_.place(table.pointer());
    for (const char* key : {"metric", "reason", "approver", "expires"}) table.require(key);
    // A part keeps its weakness in every stage that measures the metric; a node without a serial is too much.
    if (!table.has("serial")) table.require("stage");
    table.describeRule(schema::hasOneOf({"stage", "serial"}));
    table.text("stage", waiver.stage);
    table.text("metric", waiver.metric);
    table.text("device", waiver.device);
    table.text("serial", waiver.serial);
    table.text("node", waiver.node);
    table.text("reason", waiver.reason);
    table.text("approver", waiver.approver);
    if (table.text("expires", waiver.expires)) checkExpiry(table, waiver);
    table.describe("expires",
                   {{"type", "string"}, {"pattern", "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"}});
    readWhere(table, waiver);
    table.describeRule(schema::hasOneOf({"node", "serial"}));
    if (!table.has("node") && !table.has("serial"))
      table.complain("", "a waiver needs a place: `node`, or the `serial` of a device");
    table.finish();
    refuseSame(table, waiver);
    waivers_.push_back(std::move(waiver));
  }

  void readWhere(TomlTable& table, Waiver& waiver) {
    if (!table.has("where")) return;
    TomlTable where = table.table("where");
    const std::vector<std::string> keys = where.keys({{"^(?!device$)", schema::text()}});
    for (const std::string& key : keys) where.text(key.c_str(), waiver.where[key]);
    if (waiver.where.count("device") > 0)
      where.complain("device", "write `device` beside `where`, not inside it");
    where.finish();
  }

  void checkExpiry(TomlTable& table, const Waiver& waiver) {
    const int64_t end = endOfDay(waiver.expires);
    if (end < 0)
      table.complain("expires", fmt::format("`expires` must be a date such as \"2026-12-31\", found \"{}\"",
                                            printable(waiver.expires, 40)));
    else if (now_ >= static_cast<double>(end))
      table.complain("expires", fmt::format("this waiver expired at the end of {} (UTC): fix what it covers "
                                            "and remove it, or have it approved again",
                                            waiver.expires));
  }

  /// Two that cover the same would hide which of them is in force.
  void refuseSame(TomlTable& table, const Waiver& waiver) {
    const auto same = std::find_if(waivers_.begin(), waivers_.end(), [&](const Waiver& other) {
      return other.stage == waiver.stage && other.metric == waiver.metric && other.where == waiver.where &&
             other.device == waiver.device && other.serial == waiver.serial && other.node == waiver.node;
    });
    if (same != waivers_.end())
      table.complain("", fmt::format("this waives the same as the one at {}; keep one", same->at));
  }

  const TomlDocument& document_;
  double now_;
  std::vector<Waiver> waivers_;
};

}  // namespace

Result<Waivers> parseWaivers(std::string_view text, const std::string& file, double now) {
  MUSTER_TRY(const TomlDocument document, TomlDocument::parse(text, file));
  Waivers waivers;
  waivers.path = file;
  waivers.text = text;
  Complaints complaints(document);
  TomlTable root(document, "", complaints);
  waivers.list = Reader(document, now).read(root);
  MUSTER_CHECK_OK(complaints.status());
  return waivers;
}

Json waiversSchema() {
  const TomlDocument none;
  return schemaDocument("Muster waivers",
                        describeTable([&](TomlTable& root) { Reader(none, 0).read(root); }));
}

}  // namespace muster
