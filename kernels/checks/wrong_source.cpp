// SPDX-License-Identifier: Apache-2.0
// A wrong block shows who should have sent it, not who damaged it: a relay, a link or its receiver may have.
#include "kernels/checks/wrong_source.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/checks/largest.h"

namespace muster {
namespace {

/// A value with what shows that it arrived as it was sent.
struct Message {
  uint64_t bits = 0;
  uint64_t check = 0;
};

/// `about`: the index that was asked for.
Message sealed(uint64_t bits, int from, uint64_t about) {
  return {bits, scatter(scatter(scatter(bits) ^ static_cast<uint64_t>(from)) ^ about)};
}

bool isIntact(const Message& message, int from, uint64_t about) {
  return message.check == sealed(message.bits, from, about).check;
}

/// The index that a rank asks for whose result is right, and that a reply without a question is about.
constexpr uint64_t kNothing = ~0ull;

/// The ranks by what they answered.
struct Answers {
  std::vector<int> right, wrong, damaged;  ///< who did not get the question is in none
};

Status run(CollectiveOp op, std::span<const Message> sent, std::span<Message> received,
           RankExchange& exchange) {
  return exchange.exchange(op, std::as_bytes(sent), std::as_writable_bytes(received));
}

/// What ranks know together of their results and of what they heard of them.
struct Votes {
  bool wrong = false;    ///< one of them has a wrong result
  bool damaged = false;  ///< one of them heard a damaged word, and all know
  bool late = false;     ///< this one did, when it was too late to tell the others
};

/// All say again what they heard the first time.
Result<Votes> vote(bool wrong, int ranks, int rank, RankExchange& exchange) {
  Votes votes;
  votes.wrong = wrong;
  std::vector<Message> all(static_cast<size_t>(ranks));
  for (int round = 0; round < 2; ++round) {
    const Message mine = sealed((votes.wrong ? 1u : 0u) | (votes.damaged ? 2u : 0u), rank, 0);
    MUSTER_CHECK_OK(run(CollectiveOp::kAllGather, std::span(&mine, 1), all, exchange));
    for (int other = 0; other < ranks; ++other) {
      const Message& word = all[static_cast<size_t>(other)];
      const bool intact = isIntact(word, other, 0);
      votes.wrong = votes.wrong || (intact && (word.bits & 1) != 0);
      votes.damaged = votes.damaged || (intact ? (word.bits & 2) != 0 : round == 0);
      votes.late = votes.late || (!intact && round == 1);
    }
  }
  return votes;
}

/// Asks every rank for its input at `index`, and answers what they ask.
Result<Answers> askAll(const CollectiveSpec& spec, const ExactValues& values, int rank, uint64_t index,
                       RankExchange& exchange) {
  const int ranks = values.ranks();
  std::vector<Message> sent(static_cast<size_t>(ranks), sealed(index, rank, 0)), received(sent.size());
  MUSTER_CHECK_OK(run(CollectiveOp::kAllToAll, sent, received, exchange));
  for (int other = 0; other < ranks; ++other) {
    const Message& question = received[static_cast<size_t>(other)];
    Message& reply = sent[static_cast<size_t>(other)];
    reply = sealed(0, rank, kNothing);
    if (!isIntact(question, other, 0) || question.bits >= spec.sendCount(ranks)) continue;
    MUSTER_TRY(const double value, exchange.inputAt(question.bits));
    reply = sealed(std::bit_cast<uint64_t>(value), rank, question.bits);
  }
  MUSTER_CHECK_OK(run(CollectiveOp::kAllToAll, sent, received, exchange));
  Answers answers;
  for (int other = 0; other < ranks; ++other) {
    const Message& reply = received[static_cast<size_t>(other)];
    if (isIntact(reply, other, index))
      (std::bit_cast<double>(reply.bits) == values.input(other, index) ? answers.right : answers.wrong)
          .push_back(other);
    else if (!isIntact(reply, other, kNothing))
      answers.damaged.push_back(other);
  }
  return answers;
}

/// Whether a rank gets data of several others, without another rank between. Whose data alone are wrong then
/// is not by chance.
bool isDirect(CollectiveOp op) {
  return op == CollectiveOp::kAllToAll || op == CollectiveOp::kGather;
}

bool isOne(const std::vector<int>& list, int rank) {
  return std::find(list.begin(), list.end(), rank) != list.end();
}

}  // namespace

Status findWrongSource(const CollectiveSpec& spec, const ExactValues& values, int rank,
                       RankExchange& exchange, CollectiveMismatch& own) {
  // A reduction in place used its inputs up: nothing is left to look at.
  if (spec.inPlace && reduces(spec.op)) return {};
  MUSTER_TRY(const Votes votes, vote(own.wrong > 0, values.ranks(), rank, exchange));
  if (!votes.wrong && !votes.damaged) return votes.late ? Status(damagedOnItsWay(true)) : Status();
  const auto ranks = static_cast<size_t>(values.ranks());
  const Origin origin = originOf(spec, rank, values.ranks(), own.firstElement);
  MUSTER_TRY(const Answers answers,
             askAll(spec, values, rank, own.wrong > 0 ? origin.index : kNothing, exchange));
  if (own.wrong == 0) return votes.wrong ? Status() : Status(damagedOnItsWay(votes.late));
  const auto& [right, wrong, damaged] = answers;
  const bool allHeard = right.size() + wrong.size() == ranks;
  own.inputRight = isOne(right, origin.rank);
  // In place the others' inputs may be overwritten.
  if (!spec.inPlace && ranks > 2 && wrong.size() == ranks - 1 && isOne(right, rank))
    own.source = rank;
  else if (origin.rank < 0 ? allHeard && wrong.size() == 1 : isOne(wrong, origin.rank))
    own.source = origin.rank < 0 ? wrong.front() : origin.rank;
  else if (damaged.size() == 1 && right.size() == ranks - 1)
    own.source = damaged.front();
  else if (isDirect(spec.op) && originOf(spec, rank, values.ranks(), own.lastElement).rank == origin.rank)
    own.source = origin.rank;
  if (own.source >= 0 && own.source != origin.rank) own.inputRight = false;
  return {};
}

}  // namespace muster
