// SPDX-License-Identifier: Apache-2.0
// See group.h. Numbers travel as maxima over the ranks: each rank fills its own places and leaves the others
// lowest.
#include "plugins/train/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "kernels/checks/largest.h"

namespace muster::train {
namespace {

constexpr double kAbsent = -0x1p1000;  ///< below all values, and exact after maxOverRanks()
constexpr size_t kNameBytes = 64;      ///< of a node's name that travel
constexpr int kPiece = 16;             ///< bits of a number that travel in one double

std::vector<double> piecesOf(uint64_t number) {
  std::vector<double> pieces;
  for (int shift = 0; shift < 64; shift += kPiece)
    pieces.push_back(static_cast<double>(number >> shift & ((1U << kPiece) - 1)));
  return pieces;
}

}  // namespace

Result<Group> Group::form(OpenDevice& device, const GroupSpec& spec, GroupStore& store) {
  Group group;
  group.place_ = spec.place;
  if (spec.place.size == 1) return group;
  CommunicatorSpec communicator;
  communicator.name = "train";
  communicator.rank = spec.place.rank;
  communicator.size = spec.place.size;
  communicator.timeout = spec.timeout;
  communicator.interface = spec.interface;
  auto formed = device.backend->communicator(*device.device, communicator, store);
  if (!formed.ok())
    return std::move(formed).error().context(fmt::format("forming a group of {} ranks", spec.place.size));
  group.communicator_ = std::move(*formed);
  return group;
}

std::string Group::implementation() const {
  return communicator_ == nullptr ? "none" : communicator_->implementation();
}

Status Group::barrier() const {
  return communicator_ == nullptr ? Status() : communicator_->barrier();
}

Result<std::vector<double>> Group::largest(const std::vector<double>& values) const {
  if (communicator_ == nullptr) return values;
  return communicator_->maxOverRanks(values);
}

Result<std::vector<double>> Group::ofLeader(std::vector<double> values) const {
  if (communicator_ == nullptr) return values;
  if (!leads()) std::fill(values.begin(), values.end(), kAbsent);
  return gatherOverRanks(*communicator_, values, std::vector<bool>(values.size(), leads()));
}

Result<std::vector<std::vector<double>>> Group::gather(const std::vector<double>& values) const {
  const size_t count = values.size();
  std::vector<double> all(count * static_cast<size_t>(size()), kAbsent);
  const auto ownRow = static_cast<int64_t>(count) * rank();
  std::copy(values.begin(), values.end(), all.begin() + ownRow);
  if (communicator_ != nullptr) {
    std::vector<bool> own(all.size());
    std::fill_n(own.begin() + ownRow, count, true);
    MUSTER_TRY(all, gatherOverRanks(*communicator_, all, own));
  }
  std::vector<std::vector<double>> rows(static_cast<size_t>(size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto first = all.begin() + static_cast<int64_t>(i * count);
    if (count > 0 && *first != kAbsent) rows[i].assign(first, first + static_cast<int64_t>(count));
  }
  return rows;
}

Result<std::vector<int>> Group::deviants(uint64_t number) const {
  MUSTER_TRY(auto rows, gather(piecesOf(number)));
  std::map<std::vector<double>, int> votes;
  for (const auto& row : rows)
    if (!row.empty()) ++votes[row];
  // The first rank of the most common number: with equal votes rank 0's wins.
  const std::vector<double>* common = nullptr;
  for (const auto& row : rows)
    if (!row.empty() && (common == nullptr || votes[row] > votes[*common])) common = &row;
  std::vector<int> deviants;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].empty() && rows[i] != *common) deviants.push_back(static_cast<int>(i));
  return deviants;
}

Result<std::string> Group::nameRanks(const std::set<int>& ranks) const {
  std::vector<double> own(kNameBytes, 0);
  const size_t length = std::min(kNameBytes, place_.node.size());
  for (size_t i = 0; i < length; ++i) own[i] = static_cast<unsigned char>(place_.node[i]);
  MUSTER_TRY(auto rows, gather(own));
  std::string text;
  for (const int rank : ranks) {
    std::string node;
    for (const double byte : rows[static_cast<size_t>(rank)])
      if (byte > 0) node += static_cast<char>(static_cast<unsigned char>(byte));
    text += fmt::format("{}rank {}{}", text.empty() ? "" : ", ", rank, node.empty() ? "" : " (" + node + ")");
  }
  return text;
}

}  // namespace muster::train
