// SPDX-License-Identifier: Apache-2.0
// Options and help of ring-bench.
#include "tests/bench/ring_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>

namespace muster::ring::testing {
namespace {

constexpr int kFewestNodes = 2;
constexpr int kMostNodes = 100000;

constexpr const char* kHelp =
    R"(ring-bench: how surely the ring names planted faults, and in how many rounds, over simulated clusters

  --nodes N[,N...]   sizes, 2 to 100000 (8,9,64,232,1023,4096); goals are for 8 and more
  --trials N         of each world (1000 up to 256 nodes, 300 up to 1024, else 100)
  --seed N           of the trials (1); figures that count are taken with a seed that nobody developed with
  --harder           also noise that is the same in all samples of a meeting, which the goals do not speak of
  --help             this text

Exit: 0 every goal is met, 1 one is missed, 2 bad usage.
)";

int usage(const std::string& problem) {
  fmt::print(stderr, "ring-bench: {}; see ring-bench --help\n", problem);
  return 2;
}

/// A whole number in [least, most]; nothing otherwise.
template <typename T>
std::optional<T> number(std::string_view text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return {};
  return value;
}

/// The sizes of a list with commas; empty where one is none.
std::vector<int> sizes(std::string_view text) {
  std::vector<int> all;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const auto one = number<int>(text.substr(begin, end - begin), kFewestNodes, kMostNodes);
    if (!one) return {};
    all.push_back(*one);
    begin = end + 1;
  }
  return all;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--help") return fmt::print("{}", kHelp), 0;
    if (name == "--harder") {
      options.harder = true;
      continue;
    }
    if (name != "--nodes" && name != "--trials" && name != "--seed")
      return usage(fmt::format("there is no option \"{}\"", name));
    if (++i == argc) return usage(fmt::format("{} wants a number", name));
    const std::string_view value = argv[i];
    if (name == "--nodes") {
      options.nodes = sizes(value);
      if (options.nodes.empty())
        return usage(fmt::format("--nodes {}: expected numbers from {} to {}, with commas between them",
                                 value, kFewestNodes, kMostNodes));
    } else if (name == "--trials") {
      const auto trials = number<int>(value, 1, 10000000);
      if (!trials) return usage(fmt::format("--trials {}: expected a number from 1 to 10000000", value));
      options.trials = *trials;
    } else {
      const auto seed = number<uint64_t>(value, 0, UINT64_MAX);
      if (!seed) return usage(fmt::format("--seed {}: expected a whole number", value));
      options.seed = *seed;
    }
  }
  return {};
}

}  // namespace muster::ring::testing
