// SPDX-License-Identifier: Apache-2.0
// `muster judge`: stored samples judged again.
#include "runner/app/input/judged_again.h"
#include "runner/app/input/record_input.h"
#include "runner/app/judge/judge_options.h"
#include "runner/app/judge/record_output.h"
#include "runner/dispatch/plugins.h"
#include "runner/system/files.h"

namespace muster {

Result<int> judgeCommand(const JudgeOptions& options) {
  MUSTER_CHECK_OK(checkCost(options.record));
  MUSTER_TRY(Record given, recordAt(options.record));
  MUSTER_TRY(std::string original, readFile(options.record));
  const std::string sha256 = sha256Hex(original);
  std::string().swap(original);
  MUSTER_TRY(const Tree tree, findTree());
  PredicateTime call{PredicateTime::kOfCall};
  MUSTER_TRY(const Record record, judgedAgain(std::move(given), sha256, options, tree, call));
  return showRecord(record, options.out, tree.templates);
}

}  // namespace muster
