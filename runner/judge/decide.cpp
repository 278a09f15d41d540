// SPDX-License-Identifier: Apache-2.0
// From counts to a node's outcome and exit code, in the order that DESIGN section 6 fixes. See judge.h.
#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"
#include "runner/judge/judge.h"

namespace muster {
namespace {

constexpr int kExitAccepted = 0;
constexpr int kExitRejected = 1;
constexpr int kExitIncomplete = 3;
constexpr int kExitInternal = 4;
constexpr int kExitNoGpu = 5;
constexpr int kExitInterrupted = 130;

constexpr const char* kInterruptedReason = "the run was interrupted";

using Reasons = std::vector<std::string>;

void count(Reasons& reasons, size_t n, const char* one, const char* many) {
  if (n > 0) reasons.push_back(n == 1 ? fmt::format("1 {}", one) : fmt::format("{} {}", n, many));
}

Reasons rejections(const DecisionInput& in) {
  Reasons reasons;
  count(reasons, in.accounting.of(Outcome::kFail), "requirement was not met", "requirements were not met");
  if (!in.flakyAllowed)
    count(reasons, in.accounting.of(Outcome::kFlaky), "was flaky: it failed and then passed",
          "were flaky: they failed and then passed");
  return reasons;
}

/// How many verdicts say something about the machine.
size_t judged(const Accounting& accounting) {
  size_t n = 0;
  for (const Outcome outcome :
       {Outcome::kPass, Outcome::kWarn, Outcome::kFail, Outcome::kFlaky, Outcome::kWaived})
    n += accounting.of(outcome);
  return n;
}

/// The skip that keeps a partial run from being accepted has a reason of its own.
size_t selectionSkips(const DecisionInput& in) {
  return in.partial.empty() ? 0 : 1;
}

Reasons gaps(const DecisionInput& in) {
  Reasons reasons;
  count(reasons, in.accounting.of(Outcome::kError), "check produced no result", "checks produced no result");
  if (in.strict)
    count(reasons, in.accounting.of(Outcome::kUnjudged), "measurement has no limit (--strict)",
          "measurements have no limit (--strict)");
  // --no-gpu=skip says that stages without a device may be skipped, and nothing else.
  if (in.noGpuSkip) return reasons;
  count(reasons, in.accounting.requiredSkips - std::min(in.accounting.requiredSkips, selectionSkips(in)),
        "required stage or case was skipped", "required stages or cases were skipped");
  if (in.unknownSku && !in.allowUnknownSku)
    reasons.emplace_back(
        "the SKU is unknown, so no limits apply; add a profile, or set allow_unknown_sku = true");
  if (in.onlyIdle)
    reasons.emplace_back("the node was idle in every stage of the plan; end its lists of nodes with \"all\"");
  if (judged(in.accounting) == 0) reasons.emplace_back("no measurement was checked");
  return reasons;
}

/// What stands beside a verdict without changing it.
Reasons notes(const DecisionInput& in) {
  Reasons reasons;
  if (in.unknownSku && in.allowUnknownSku) reasons.emplace_back("the SKU is unknown and the plan allows it");
  count(reasons, in.accounting.of(Outcome::kElsewhere), "stage runs in another job (--scope)",
        "stages run in another job (--scope)");
  count(reasons, in.accounting.of(Outcome::kWaived), "failure is waived", "failures are waived");
  if (in.flakyAllowed)
    count(reasons, in.accounting.of(Outcome::kFlaky), "was flaky, and the plan allows it",
          "were flaky, and the plan allows it");
  return reasons;
}

Decision decision(Acceptance acceptance, int exitCode, std::initializer_list<Reasons> parts) {
  Decision result{acceptance, exitCode, {}};
  for (const auto& part : parts) result.reasons.insert(result.reasons.end(), part.begin(), part.end());
  return result;
}

}  // namespace

Decision decide(const DecisionInput& in) {
  const Reasons rejected = rejections(in);
  const Reasons missing = gaps(in);
  const Reasons interruption = in.interrupted ? Reasons{kInterruptedReason} : Reasons{};
  const Reasons partial = in.partial.empty() ? Reasons{} : Reasons{in.partial};
  if (in.interrupted && rejected.empty())
    return decision(Acceptance::kInterrupted, kExitInterrupted, {interruption, partial, missing});
  if (!in.accounting.balanced())
    return decision(
        Acceptance::kIncomplete, kExitInternal,
        {{fmt::format("internal fault: {} verdicts were expected and {} given; please report this",
                      in.accounting.expected, in.accounting.total())}});
  if (!rejected.empty())
    return decision(Acceptance::kRejected, kExitRejected,
                    {rejected, interruption, partial, missing, notes(in)});
  if (!missing.empty())
    return decision(Acceptance::kIncomplete, kExitIncomplete, {partial, missing, notes(in)});
  if (in.noGpuSkip)
    return decision(Acceptance::kNoGpu, kExitNoGpu,
                    {{"no GPU was found, and --no-gpu=skip allows that"}, partial, notes(in)});
  if (!partial.empty()) return decision(Acceptance::kPartial, kExitIncomplete, {partial, notes(in)});
  return decision(Acceptance::kAccepted, kExitAccepted, {notes(in)});
}

bool wasInterrupted(Acceptance acceptance, const std::vector<std::string>& reasons) {
  return acceptance == Acceptance::kInterrupted ||
         std::find(reasons.begin(), reasons.end(), kInterruptedReason) != reasons.end();
}

}  // namespace muster
