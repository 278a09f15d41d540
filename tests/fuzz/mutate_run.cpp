// SPDX-License-Identifier: Apache-2.0
// See mutate_run.h.
#include "tests/fuzz/mutate_run.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "tests/fuzz/mutator.h"

namespace muster::testing {
namespace {

constexpr unsigned kMostSeconds = 30;
constexpr size_t kLargestInput = size_t{64} * 1024;

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

bool survives(const char* what, const std::string& input, InputCheck check) {
  current = input;
  alarm(kMostSeconds);
  const std::string problem = check(input);
  alarm(0);
  if (problem.empty()) return true;
  std::fprintf(stderr, "%s: %s; the input:\n", what, problem.c_str());
  writeEscaped(input);
  return false;
}

}  // namespace

bool runMutations(const char* what, const std::vector<std::string>& seeds,
                  const std::vector<std::string>& words, long count, uint64_t seed, InputCheck check) {
  catchSignals();
  if (seeds.empty()) {
    std::fprintf(stderr, "%s: there is no seed\n", what);
    return false;
  }
  for (const std::string& input : seeds)
    if (!survives(what, input, check)) return false;
  Mutator mutator(seeds, words, seed);
  for (long i = 0; i < count; ++i) {
    std::string input = mutator.next();
    if (input.size() > kLargestInput) input.resize(kLargestInput);
    if (!survives(what, input, check)) {
      std::fprintf(stderr, "%s: number %ld of seed %llu\n", what, i, static_cast<unsigned long long>(seed));
      return false;
    }
  }
  std::printf("%s: %zu seeds and %ld mutated inputs: no crash, no hang, no odd outcome\n", what, seeds.size(),
              count);
  return true;
}

}  // namespace muster::testing
