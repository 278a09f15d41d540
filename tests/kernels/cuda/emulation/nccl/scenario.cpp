// SPDX-License-Identifier: Apache-2.0
// See scenario.h.
#include "tests/kernels/cuda/emulation/nccl/scenario.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace muster::emulation {
namespace {

[[noreturn]] void die(const std::string& entry) {
  std::fprintf(stderr, "fake NCCL: not understood: %s\n", entry.c_str());
  _exit(99);
}

/// What follows `words` in `entry`; none when it does not begin with them.
std::optional<std::string> after(const std::string& entry, const std::string& words) {
  if (!entry.starts_with(words)) return std::nullopt;
  return entry.substr(words.size());
}

std::pair<int, ncclResult_t> callAndCode(const std::string& entry, const std::string& numbers) {
  int call = 0, code = 0;
  if (!(std::istringstream(numbers) >> call >> code)) die(entry);
  return {call, static_cast<ncclResult_t>(code)};
}

bool readFlag(NcclScenario& made, const std::string& entry) {
  const std::map<std::string, bool*> flags = {
      {"exit in init", &made.exitInInit}, {"unseen", &made.unseen}, {"busy", &made.busy},
      {"abort hangs", &made.abortHangs},  {"silent", &made.silent}, {"finalize hangs", &made.finalizeHangs}};
  const auto flag = flags.find(entry);
  return flag != flags.end() && (*flag->second = true);
}

void readEntry(NcclScenario& made, const std::string& entry) {
  if (readFlag(made, entry)) return;
  if (const auto call = after(entry, "exit in call "))
    made.exitInCall = std::atoi(call->c_str());
  else if (const auto hanging = after(entry, "hang in call "))
    made.hangInCall = std::atoi(hanging->c_str());
  else if (const auto failed = after(entry, "fail call "))
    made.failCall = callAndCode(entry, *failed);
  else if (const auto later = after(entry, "fail after "))
    made.failAfter = callAndCode(entry, *later);
  else if (const auto wrong = after(entry, "wrong call "))
    made.wrongCall = std::atoi(wrong->c_str());
  else if (const auto via = after(entry, "via "))
    made.via = *via;
  else if (const auto line = after(entry, "says "))
    made.says.push_back(*line);
  else if (const auto taken = after(entry, "takes "); taken && taken->find('=') != std::string::npos)
    made.takes[taken->substr(0, taken->find('='))] = taken->substr(taken->find('=') + 1);
  else
    die(entry);
}

NcclScenario read() {
  NcclScenario made;
  const char* text = std::getenv("MUSTER_FAKE_NCCL");
  std::istringstream entries(text == nullptr ? "" : text);
  for (std::string entry; std::getline(entries, entry, ';');)
    if (!entry.empty()) readEntry(made, entry);
  return made;
}

}  // namespace

const NcclScenario& NcclScenario::get() {
  static const NcclScenario scenario = read();
  return scenario;
}

}  // namespace muster::emulation
