// SPDX-License-Identifier: Apache-2.0
// Test "pattern": writes patterns over memory, reads them back, and says which bits came back wrong.
#include "kernels/spec/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plugins/memory/params.h"
#include "plugins/memory/tests.h"
#include "runner/core/text.h"
#include "runner/core/units.h"

namespace muster::memory {
namespace {

constexpr uint64_t kChunk =
    1ull << 30;  ///< one buffer of the sweep: progress and cancellation come in between
constexpr int kLoggedErrors = 16;
constexpr double kWarmup = 0.2;    ///< seconds that a cold clock needs; rates count after them
constexpr size_t kMostRates = 64;  ///< samples of the rate for each pattern; longer tests take longer samples

/// "1, 17" for the bits that differ.
std::string flippedBits(uint64_t expected, uint64_t actual) {
  std::vector<std::string> bits;
  for (unsigned bit = 0; bit < 64; ++bit)
    if (((expected ^ actual) >> bit & 1) != 0) bits.push_back(std::to_string(bit));
  return join(bits, ", ");
}

/// Memory in chunks, the sweep through it, and what was found.
class PatternTest {
 public:
  PatternTest(const sdk::Host& host, Device& device, uint64_t seed)
      : host_(host), device_(device), seed_(seed) {}

  /// Refuses what cannot be had before it takes anything: chunk by chunk it would first drain the machine.
  Status allocate(uint64_t bytes) {
    MUSTER_TRY(uint64_t free, device_.freeBytes());
    if (bytes > free)
      return Error{ErrorCode::kIo,
                   fmt::format("out of memory: {} requested, {} free; lower bytes or fraction",
                               formatQuantity(static_cast<double>(bytes), "B"),
                               formatQuantity(static_cast<double>(free), "B")),
                   device_.info().id};
    for (uint64_t left = bytes; left > 0; left -= chunks_.back()->bytes()) {
      MUSTER_TRY(auto chunk, device_.allocate(std::min(left, kChunk)));
      chunks_.push_back(std::move(chunk));
    }
    bytes_ = bytes;
    return {};
  }

  Status run(const std::vector<NamedPattern>& patterns, int passes) {
    start_ = device_.now();
    sweepsPlanned_ = patterns.size() * static_cast<size_t>(passes);
    chunksPerRate_ = (chunks_.size() * static_cast<size_t>(passes) + kMostRates - 1) / kMostRates;
    for (int pass = 0; pass < passes; ++pass)
      for (const NamedPattern& pattern : patterns) MUSTER_CHECK_OK(sweep(pattern, pass));
    return {};
  }

  Status report() const {
    const double now = device_.now();
    MUSTER_CHECK_OK(host_.measurement("pattern_errors", "count", {static_cast<double>(errors_)}, {}, now));
    MUSTER_CHECK_OK(host_.measurement("pattern_bytes", "B", {static_cast<double>(bytes_)}, {}, now));
    MUSTER_CHECK_OK(host_.measurement("pattern_sweeps", "count", {static_cast<double>(sweeps_)}, {}, now));
    for (const auto& [pattern, read] : rates_)
      if (!read.rates.empty())
        MUSTER_CHECK_OK(
            host_.measurement("pattern_read_rate", "B/s", read.rates, {{"pattern", pattern}}, now));
    return first_.empty() ? Status() : host_.fact("pattern_first_error", first_);
  }

 private:
  /// All chunks are written before the first is read, so that the data rests in memory and not in a cache.
  Status sweep(const NamedPattern& pattern, int pass) {
    for (size_t i = 0; i < chunks_.size(); ++i) {
      MUSTER_CHECK_OK(progress(pattern, pass, static_cast<double>(i) / 2));
      MUSTER_CHECK_OK(device_.fillPattern(*chunks_[i], part(pattern, pass, i)));
    }
    MUSTER_CHECK_OK(device_.synchronize());
    for (size_t i = 0; i < chunks_.size(); ++i) {
      MUSTER_CHECK_OK(progress(pattern, pass, static_cast<double>(i + chunks_.size()) / 2));
      const double begun = device_.now();
      MUSTER_TRY(Mismatch mismatch, device_.checkPattern(*chunks_[i], part(pattern, pass, i)));
      if (begun - start_ >= kWarmup)
        addRate(rates_[pattern.name], chunks_[i]->bytes(), device_.now() - begun);
      if (mismatch.wrong > 0) note(mismatch, pattern, pass, i);
    }
    ++sweeps_;
    return {};
  }

  /// What was read back of one pattern, in samples of equally many chunks.
  struct ReadBack {
    std::vector<double> rates;
    double bytes = 0;
    double seconds = 0;
    size_t chunks = 0;
  };

  void addRate(ReadBack& read, uint64_t bytes, double seconds) const {
    read.bytes += static_cast<double>(bytes);
    read.seconds += seconds;
    if (++read.chunks < chunksPerRate_) return;
    if (read.seconds > 0) read.rates.push_back(read.bytes / read.seconds);
    read.bytes = read.seconds = 0;
    read.chunks = 0;
  }

  /// Words go on from chunk to chunk, so that those which lie whole chunks apart differ, too. In each pass
  /// random words are others and the walking bit is a place further.
  [[nodiscard]] PatternPart part(const NamedPattern& pattern, int pass, size_t chunk) const {
    const auto number = static_cast<uint64_t>(pattern.pattern);
    const uint64_t first = chunk * (kChunk / 8);
    switch (pattern.pattern) {
      case Pattern::kFirstRandom:
        return {std::max(scatter(scatter(seed_) + static_cast<uint64_t>(pass)), number), first};
      case Pattern::kWalkingOne:
      case Pattern::kWalkingZero:
        return {number, first + static_cast<uint64_t>(pass)};
      default:
        return {number, first};
    }
  }

  Status progress(const NamedPattern& pattern, int pass, double chunk) const {
    if (host_.cancelled())
      return Error{ErrorCode::kTimeout, "the pattern test was cancelled", device_.info().id};
    const double done = static_cast<double>(sweeps_) + chunk / static_cast<double>(chunks_.size());
    host_.progress(done / static_cast<double>(sweepsPlanned_),
                   fmt::format("pattern {}, pass {}, {} bytes wrong", pattern.name, pass + 1, errors_));
    return {};
  }

  void note(const Mismatch& mismatch, const NamedPattern& pattern, int pass, size_t chunk) {
    errors_ += mismatch.wrong;
    const std::string text = fmt::format(
        "{}: pattern {}, pass {}: {} bytes wrong in part {}, the first at byte offset {:#x} of all tested "
        "memory: "
        "expected {:#018x}, found {:#018x}, flipped bits {}",
        device_.info().id, pattern.name, pass + 1, mismatch.wrong, chunk,
        chunk * kChunk + mismatch.firstOffset, mismatch.expectedBits, mismatch.actualBits,
        flippedBits(mismatch.expectedBits, mismatch.actualBits));
    if (first_.empty()) first_ = text;
    if (logged_++ < kLoggedErrors) host_.log(MUSTER_LOG_ERROR, text);
  }

  const sdk::Host& host_;
  Device& device_;
  uint64_t seed_;
  std::vector<std::unique_ptr<Buffer>> chunks_;
  uint64_t bytes_ = 0;
  double start_ = 0;
  size_t sweepsPlanned_ = 0;
  size_t chunksPerRate_ = 1;
  std::map<std::string, ReadBack> rates_;  ///< by pattern
  size_t sweeps_ = 0;
  uint64_t errors_ = 0;
  int logged_ = 0;
  std::string first_;
};

}  // namespace

Status runPattern(const Bench& bench, const Json& json, uint64_t seed) {
  Device& device = bench.device;
  MUSTER_TRY(const PatternParams params, sdk::readParams<PatternParams>(json));
  auto bytes = static_cast<double>(params.bytes);
  if (params.fraction > 0) {
    MUSTER_TRY(uint64_t free, device.freeBytes());
    bytes = params.fraction * static_cast<double>(free);
  }
  PatternTest test(bench.host, device, seed);
  MUSTER_CHECK_OK(test.allocate(static_cast<uint64_t>(std::max(bytes, 8.0)) / 8 * 8));
  MUSTER_CHECK_OK(test.run(params.patterns, params.passes));
  return test.report();
}

}  // namespace muster::memory
