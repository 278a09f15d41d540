// SPDX-License-Identifier: Apache-2.0
// Writes every sample as a row of CSV (RFC 4180).
#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

std::string csvCell(const std::string& text) {
  std::string shown = printable(text, std::string::npos);
  if (!shown.empty() && std::string_view("=+-@'").find(shown.front()) != std::string_view::npos)
    shown.insert(0, "'");
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  std::string quoted = "\"";
  for (const char c : shown) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string renderCsv(const Record& record) {
  std::string out = kHeader;
  const std::string marks(trim(markPrefix(record)));
  for (const StageRecord& stage : record.stages) {
    const std::string head =
        fmt::format("{},{},{}", csvCell(marks), csvCell(record.node), csvCell(stage.name));
    for (const Measurement& m : stage.measurements) {
      const std::string start = rowStart(head, m);
      if (m.isText()) out += start + "0," + csvCell(m.text) + "\n";
      for (size_t i = 0; i < m.samples.size(); ++i) out += fmt::format("{}{},{}\n", start, i, m.samples[i]);
    }
  }
  return out;
}

std::string mergeCsv(const std::vector<std::string>& texts) {
  std::string out = kHeader;
  for (const std::string& text : texts)
    out += text.substr(std::min(text.size(), std::string_view(kHeader).size()));
  return out;
}

}  // namespace muster
