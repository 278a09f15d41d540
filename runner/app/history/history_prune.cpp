// SPDX-License-Identifier: Apache-2.0
// `muster history prune`: thins old runs by a rule, after saying what it keeps.
#include "reports/history/prune.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "runner/app/history/history_command.h"
#include "runner/app/process/print_error.h"
#include "runner/core/clock.h"
#include "runner/core/json.h"
#include "runner/core/print.h"
#include "runner/core/text.h"
#include "runner/judge/exit_code.h"

namespace muster {
namespace {

using history::KeptFor;

size_t keptFor(const history::PrunePlan& plan, KeptFor reason) {
  return plan.kept[static_cast<size_t>(reason)];
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

void printPlan(const history::PrunePlan& plan, const history::PruneRule& rule, const std::string& where,
               uint64_t size) {
  printText("{}: {} runs of {} nodes, {}\n", printable(where, 200), plan.runs, plan.nodes, megabytes(size));
  const auto line = [](size_t count, const std::string& what) { printText("  {:>8}  {}\n", count, what); };
  printText("keeps {} runs\n", plan.runs - plan.remove.size());
  line(keptFor(plan, KeptFor::kYoung), fmt::format("of the last {:g} days", rule.days));
  line(keptFor(plan, KeptFor::kNewest),
       fmt::format("older, but among the newest {} of their node", rule.newest));
  line(keptFor(plan, KeptFor::kAcceptance), "older, the last acceptance of their node");
  line(keptFor(plan, KeptFor::kSpan),
       fmt::format("older, the last of their verdict per {:g} days", rule.every));
  printText("removes {} runs\n", plan.remove.size());
}

/// On a terminal one line that counts up.
void showProgress(size_t done, size_t all) {
  if (isatty(STDERR_FILENO) != 0)
    fmt::print(stderr, "\r{} of {} removed{}", done, all, done == all ? "\n" : "");
}

Json toJson(const history::PrunePlan& plan, uint64_t before, uint64_t after, bool applied) {
  return {{"runs", plan.runs},
          {"nodes", plan.nodes},
          {"removed", plan.remove},
          {"kept",
           {{"days", keptFor(plan, KeptFor::kYoung)},
            {"newest", keptFor(plan, KeptFor::kNewest)},
            {"acceptance", keptFor(plan, KeptFor::kAcceptance)},
            {"every", keptFor(plan, KeptFor::kSpan)}}},
          {"bytes_before", before},
          {"bytes_after", after},
          {"applied", applied}};
}

/// The file's size afterwards. That it could not be made smaller undoes nothing: later runs use the space.
Result<uint64_t> apply(history::Store& store, const history::PrunePlan& plan) {
  MUSTER_CHECK_OK(store.remove(plan.remove, [&](size_t done) { showProgress(done, plan.remove.size()); }));
  if (const Status compacted = store.compact(); !compacted.ok())
    printError(
        fmt::format("{}\nthe runs were removed, but the file was not compacted; later runs reuse the space, "
                    "or prune again to compact it",
                    compacted.error().text()));
  return store.size();
}

}  // namespace

Result<int> historyPrune(const HistoryOptions& options) {
  MUSTER_TRY(history::Store store, openHistory(options, history::Access::kRead));
  MUSTER_TRY(const auto runs, store.summaries());
  MUSTER_TRY(const uint64_t before, store.size());
  const history::PrunePlan plan = history::planPrune(runs, options.rule, systemClock().wallUnix());
  if (!options.json) printPlan(plan, options.rule, store.database().path().string(), before);
  uint64_t after = before;
  if (options.apply) {
    MUSTER_TRY(history::Store writer, openHistory(options, history::Access::kWrite));
    MUSTER_TRY(after, apply(writer, plan));
  }
  if (options.json)
    printJson(toJson(plan, before, after, options.apply));
  else if (options.apply)
    printText("done: {} now, {} before\n", megabytes(after), megabytes(before));
  else if (!plan.remove.empty())
    printText("nothing was removed; use --apply to remove\n");
  return kExitAccepted;
}

}  // namespace muster
