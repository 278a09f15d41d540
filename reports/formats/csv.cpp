// SPDX-License-Identifier: Apache-2.0
// Writes every sample as a row of CSV (RFC 4180).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reports/formats/formats.h"
#include "runner/core/text.h"
#include "runner/core/units.h"
#include "runner/record/findings/marks.h"

namespace muster {
namespace {

constexpr const char* kHeader =
    "marks,node,stage,case,metric,unit,direction,device,rank,attempt,repeat,labels,sample,value\n";

std::string rowStart(const std::string& head, const Measurement& m) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},", head, csvCell(m.caseId), csvCell(m.metric),
                     csvCell(m.unit), directionName(m.direction), csvCell(m.device), m.rank, m.attempt,
                     m.repeat, csvCell(labelsText(m.labels)));
}

/// Whether a spreadsheet would compute a cell that begins so. The last four are the full-width ＝＋－＠.
bool isFormula(std::string_view cell) {
  const auto begins = [&](std::string_view sign) { return cell.starts_with(sign); };
  constexpr std::array<std::string_view, 9> kSigns = {
      "=", "+", "-", "@", "'", "\xEF\xBC\x9D", "\xEF\xBC\x8B", "\xEF\xBC\x8D", "\xEF\xBC\xA0"};
  return std::any_of(kSigns.begin(), kSigns.end(), begins);
}

/// With an apostrophe before each formula. Where the list separator is the semicolon, the text after one is a
/// cell too, which may begin with quotes that the spreadsheet removes.
std::string guarded(const std::string& text) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    std::string_view cell(text.data() + at, end - at);
    if (at > 0) cell.remove_prefix(std::min(cell.find_first_not_of('"'), cell.size()));
    if (isFormula(cell)) out += '\'';
    out.append(text, at, end + 1 - at);
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string csvCell(const std::string& text) {
  std::string shown = guarded(printable(text, std::string::npos));
  if (shown.find_first_of(",;\"") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string renderCsv(const Record& record, TextLimit& limit) {
  std::string out = kHeader;
  const std::string marks(trim(markPrefix(record)));
  for (const StageRecord& stage : record.stages) {
    const std::string head =
        fmt::format("{},{},{}", csvCell(marks), csvCell(record.node), csvCell(stage.name));
    for (const Measurement& m : stage.measurements) {
      if (limit.isFull(Weight::kBulk)) {
        limit.leaveOut(m.isText() ? 1 : m.samples.size());
        continue;
      }
      const std::string start = rowStart(head, m);
      if (m.isText()) limit.add(out, Weight::kBulk, [&] { return start + "0," + csvCell(m.text) + "\n"; });
      for (size_t i = 0; i < m.samples.size(); ++i)
        limit.add(out, Weight::kBulk, [&] { return fmt::format("{}{},{}\n", start, i, m.samples[i]); });
    }
  }
  return out + csvNote(kHeader, limit, marks, record.node);
}

std::string csvNote(std::string_view header, const TextLimit& limit, const std::string& marks,
                    const std::string& second) {
  if (limit.leftOut() == 0) return "";
  const auto others = static_cast<size_t>(std::count(header.begin(), header.end(), ',')) - 1;
  return fmt::format("{},{}{}\n", csvCell(marks + (marks.empty() ? "" : " ") + limit.note()), csvCell(second),
                     std::string(others, ','));
}

std::string mergeCsv(const std::vector<std::string>& texts) {
  std::string out = kHeader;
  for (const std::string& text : texts)
    out += text.substr(std::min(text.size(), std::string_view(kHeader).size()));
  return out;
}

}  // namespace muster
