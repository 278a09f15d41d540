// SPDX-License-Identifier: Apache-2.0
// Recognises causes and named parts in the runner's error texts.
#include "reports/fleet/read/cause.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>

#include "reports/fleet/read/dom_fields.h"
#include "runner/core/text.h"

namespace muster::fleet {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A text without what stands in double quotes: the words of a peer (quoted() in core/text.h).
std::string withoutQuotes(std::string_view text) {
  std::string rest;
  for (size_t at = 0;;) {
    const size_t begin = text.find('"', at);
    const size_t end = begin == std::string_view::npos ? begin : text.find('"', begin + 1);
    rest += text.substr(at, end == std::string_view::npos ? end : begin - at);
    if (end == std::string_view::npos) return rest;
    at = end + 1;
  }
}

/// What the runner and its ranks say when somebody outside of the run ended them.
constexpr std::array<std::string_view, 6> kStopped = {"was stopped because the run was cancelled",
                                                      "was told to stop",
                                                      "it was cancelled",
                                                      "the run was interrupted",
                                                      "the time limit of Slurm job",
                                                      "was interrupted before it"};

/// What node 0 says of one that skips a stage of all.
constexpr std::string_view kTakesNoPart = " does not take part: ";

/// What node 0, or who misses it, says when nodes do not meet.
constexpr std::array<std::string_view, 8> kNotMet = {" did not arrive: ",
                                                     " did not answer at ",
                                                     " did not come to this stage",
                                                     " did not decide about this stage",
                                                     kTakesNoPart,
                                                     ", which serves the store: ",
                                                     " from most nodes: ",
                                                     "; all nodes of a run must have the same"};

constexpr size_t kMostOfCause = 2'000;  ///< bytes; node 0 names at most 20 nodes
constexpr size_t kMostOfText = 8'000;   ///< in which a cause is looked for

constexpr std::string_view kStoppedFor = " was stopped because ";

/// What a rank says whose peers are gone, for a reason that only they know (kernels/host/gloo/group.cpp).
constexpr std::string_view kLostGroup = " lost its group in ";

/// What a rank says that got other values than were sent to it.
constexpr std::string_view kUntold = "from a rank that cannot be told";

int numberIn(const std::ssub_match& text) {
  int number = -1;
  const std::string digits = text.str();
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

/// A part that a text names, and where its name stands.
struct Found {
  Mention mention;
  size_t begin = 0;
  size_t end = 0;
};

std::vector<Found> findMentions(const std::string& text) {
  // "rank 3 (gpu3 of node 1 (n1))", "rank 3 (node 1 (n1))", "rank 3 (gpu3)", "rank 3", "node 1 (n1)", "node
  // 1"
  static const std::regex kNames(
      "rank ([0-9]{1,7})(?: \\((?:([^ ()]{1,64}) of )?node ([0-9]{1,7})(?: \\(([^ ()]{1,100})\\))?\\)|"
      " \\(([^ ()]{1,64})\\))?|node ([0-9]{1,7})(?: \\(([^ ()]{1,100})\\))?");
  std::vector<Found> found;
  for (std::sregex_iterator at(text.begin(), text.end(), kNames), end; at != end; ++at) {
    const std::smatch& m = *at;
    Found one;
    one.mention.rank = numberIn(m[1]);
    one.mention.device = m[2].matched ? m[2].str() : m[5].str();
    one.mention.node = m[6].matched ? numberIn(m[6]) : numberIn(m[3]);
    one.mention.host = m[6].matched ? m[7].str() : m[4].str();
    one.begin = static_cast<size_t>(m.position());
    one.end = one.begin + static_cast<size_t>(m.length());
    found.push_back(std::move(one));
  }
  return found;
}

/// What `text` says of each part: what follows its name, in a list "A, B were lost" what follows the last
/// one.
std::string clauseOf(const std::string& text, const std::vector<Found>& found, size_t i) {
  for (; i < found.size(); ++i) {
    const size_t end = i + 1 < found.size() ? found[i + 1].begin : text.size();
    std::string clause = text.substr(found[i].end, end - found[i].end);
    if (clause != ", ") return clause;
  }
  return "";
}

}  // namespace

std::optional<std::string> sourceRank(std::string_view firstFault) {
  if (has(firstFault, kUntold)) return "";
  constexpr std::string_view kFrom = "from rank ";
  const size_t at = firstFault.rfind(kFrom);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = firstFault.substr(at + kFrom.size());
  const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789"));
  if (digits.empty() || digits.size() > 7) return std::nullopt;
  return std::string(digits);
}

CaseCause caseCause(std::string_view whole, std::string_view named, bool stopped) {
  const std::string detail = withoutQuotes(whole.substr(0, kMostOfText)),
                    culprit = withoutQuotes(boundedCause(named));
  if (has(detail, kUntold)) return {Cause::kRank, {}};
  if (!culprit.empty() && has(detail, culprit)) return {Cause::kPeer, culprit};
  // That of another node is none of its own.
  if (has(detail, "prerequisite stage ") && !has(detail, kTakesNoPart)) return {Cause::kNeed, {}};
  if (std::any_of(kNotMet.begin(), kNotMet.end(),
                  [&](std::string_view words) { return has(detail, words); }) ||
      has(detail, " was interrupted by its user"))
    return {Cause::kPeer, detail};
  const bool told = std::any_of(kStopped.begin(), kStopped.end(),
                                [&](std::string_view words) { return has(detail, words); });
  if (stopped || told) return {Cause::kStopped, {}};
  const size_t peer = detail.find(kStoppedFor);
  if (peer == std::string_view::npos) return {has(detail, kLostGroup) ? Cause::kGroup : Cause::kOwn, {}};
  return {Cause::kPeer, detail.substr(peer + kStoppedFor.size())};
}

bool wasUnable(std::string_view reason) {
  return has(reason, kTakesNoPart) && (has(reason, "did not pass (fail)") ||
                                       has(reason, "did not pass (error)") || wasStoppedBefore(reason));
}

bool wasStoppedBefore(std::string_view reason) {
  return has(reason, "interrupted") || has(reason, "cancelled") || has(reason, "time limit");
}

std::string boundedCause(std::string_view text) {
  if (text.size() <= kMostOfCause) return bounded(text, 2 * kMostOfCause);
  size_t end = text.rfind(", ", kMostOfCause);
  if (end == std::string_view::npos) end = text.rfind(' ', kMostOfCause);
  return bounded(text.substr(0, end == std::string_view::npos ? 0 : end), 2 * kMostOfCause);
}

std::vector<Mention> accusedBy(const std::string& whole) {
  const std::string source = withoutQuotes(whole);
  // Node 0's count of absent nodes comes before anybody is named: later the words are somebody else's.
  constexpr std::string_view kAbsent = " did not arrive: ";
  const size_t absent = source.find(kAbsent);
  const bool counts = absent != std::string::npos && findMentions(source.substr(0, absent)).empty();
  std::string said = counts ? source.substr(absent + kAbsent.size()) : source;
  // What follows explains it, in the words of whoever met it: nobody is accused there.
  for (const char* explanation : {"; ", ": "}) said = said.substr(0, said.find(explanation));
  std::vector<Found> found = findMentions(said);
  if (found.empty()) return {};
  const std::string first = clauseOf(said, found, 0);
  // "node 2 (n2) lost node 0 (n0), which serves the store": the one that lost speaks of the other.
  if (found.size() > 1 && has(first, " lost ")) found.erase(found.begin());
  // "node 0 (n0) did not answer at node 0's address": the rest of the sentence names nobody.
  if (has(first, " did not ")) found.resize(1);
  std::vector<Mention> accused;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::string clause = clauseOf(said, found, i);
    Mention& mention = found[i].mention;
    mention.interrupted =
        has(clause, "interrupted") || has(clause, "told to stop") || has(clause, "was cancelled");
    accused.push_back(mention);
  }
  return accused;
}

}  // namespace muster::fleet
