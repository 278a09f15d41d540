// SPDX-License-Identifier: Apache-2.0
// See mutate_run.h.
#include "tests/fuzz/mutate_run.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

#include "runner/core/text.h"

namespace muster::testing {
namespace {

constexpr unsigned kMostSeconds = 30;
constexpr long kMostKiB = 512L * 1024;  ///< beyond what was in use before

std::string current;  ///< the input at work, for the handler

void writeBytes(const char* bytes, size_t size) {
  (void)!write(STDERR_FILENO, bytes, size);
}

/// Text as it is, other bytes as \xNN. Only what is safe in a signal handler.
void writeEscaped(const std::string& input) {
  constexpr char kHex[] = "0123456789abcdef";
  for (const char c : input) {
    const auto byte = static_cast<unsigned char>(c);
    const char escaped[4] = {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    const bool plain = c == '\n' || (byte >= ' ' && byte < 0x7f);
    writeBytes(plain ? &c : escaped, plain ? 1 : sizeof escaped);
  }
  writeBytes("\n", 1);
}

void onSignal(int number) {
  constexpr char kSlow[] = "\nthis input took too long:\n", kFatal[] = "\nthis input crashed it:\n";
  if (number == SIGALRM) {
    writeBytes(kSlow, sizeof kSlow - 1);
  } else {
    writeBytes(kFatal, sizeof kFatal - 1);
  }
  writeEscaped(current);
  _exit(1);
}

void catchSignals() {
  signal(SIGALRM, onSignal);
  signal(SIGABRT, onSignal);
#ifndef __SANITIZE_ADDRESS__  // which reports these itself, and then aborts
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, onSignal);
#endif
}

long mostMemoryKiB() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

bool survives(const char* what, const std::string& input, InputCheck check) {
  current = input;
  const long before = mostMemoryKiB();
  alarm(kMostSeconds);
  std::string problem = check(input);
  alarm(0);
  if (mostMemoryKiB() - before > kMostKiB) problem = "it takes more than 512 MiB";
  if (problem.empty()) return true;
  std::fprintf(stderr, "%s: %s; the input:\n", what, problem.c_str());
  writeEscaped(input);
  return false;
}

}  // namespace

std::string problemOfError(const Error& error) {
  const std::string text = error.text();
  if (error.message.empty()) return "an error says nothing";
  if (text.size() > 4000) return "an error is endless: " + printable(text);
  return printable(text, text.size()) == text ? "" : "an error is not printable: " + printable(text);
}

bool runMutations(const char* what, const std::vector<std::string>& seeds,
                  const std::function<std::string()>& next, long count, InputCheck check) {
  catchSignals();
  if (seeds.empty()) {
    std::fprintf(stderr, "%s: there is no seed\n", what);
    return false;
  }
  for (const std::string& input : seeds)
    if (!survives(what, input, check)) return false;
  for (long i = 0; i < count; ++i) {
    if (survives(what, next(), check)) continue;
    std::fprintf(stderr, "%s: number %ld\n", what, i);
    return false;
  }
  std::printf("%s: %zu seeds and %ld mutated inputs: no crash, no hang, no odd outcome\n", what, seeds.size(),
              count);
  return true;
}

}  // namespace muster::testing
