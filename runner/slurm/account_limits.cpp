// SPDX-License-Identifier: Apache-2.0
// Reads the job limits of accounts and QOS.
#include "runner/slurm/account_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "runner/core/text.h"

namespace muster::slurm {
namespace {

/// One association or QOS: its fields, and those of the sections about this user and account.
using Record = std::map<std::string, std::string>;

std::string valueOf(const Record& record, const char* key) {
  const auto found = record.find(key);
  return found == record.end() ? "" : found->second;
}

/// The name in "root(0)".
std::string bare(const std::string& text) {
  return text.substr(0, text.find('('));
}

void addFields(const std::string& line, Record& record) {
  for (const std::string& word : split(line, ' '))
    if (const size_t equals = word.find('='); equals != std::string::npos && equals > 0)
      record.emplace(word.substr(0, equals), word.substr(equals + 1));
}

bool beginsWith(const std::string& text, const char* start) {
  return text.rfind(start, 0) == 0;
}

/// Every record. Below "User Limits" and "Account Limits" of a QOS a line names whose limits follow.
std::vector<Record> recordsOf(const std::string& text, const Submitter& submitter) {
  std::vector<Record> all;
  bool ours = true;
  for (const std::string& raw : split(text, '\n')) {
    const std::string line(trim(raw));
    if (beginsWith(line, "ClusterName=") || beginsWith(line, "QOS=")) {
      all.emplace_back();
      ours = true;
    }
    if (line.empty() || all.empty()) continue;
    if (line.find('=') == std::string::npos)
      ours = line == std::to_string(submitter.user) || line == submitter.account;
    else if (ours)
      addFields(line, all.back());
  }
  return all;
}

/// What "50(3)" leaves; nothing for "N(3)" and "".
std::optional<int> leftOf(const std::string& value) {
  int limit = 0, used = 0;
  if (std::sscanf(value.c_str(), "%9d(%9d)", &limit, &used) != 2) return std::nullopt;
  return std::max(limit - used, 0);
}

/// Keeps the smaller of two rooms.
void take(std::optional<QueueRoom>& room, const Record& record, const char* key, const std::string& whose) {
  const std::string value = valueOf(record, key);
  const auto left = leftOf(value);
  if (left && (!room || *left < room->jobs))
    room = QueueRoom{*left, fmt::format("{} of {} is {}, with the used ones in brackets", key, whose,
                                        printable(value, 40))};
}

bool isAssociation(const Record& record, const Submitter& submitter) {
  const std::string user = valueOf(record, "UserName"), partition = valueOf(record, "Partition");
  if (user.size() < 3 || user.find(fmt::format("({})", submitter.user)) == std::string::npos) return false;
  if (!partition.empty() && partition != submitter.partition) return false;
  return submitter.account.empty() ? valueOf(record, "DefAssoc") == "Yes"
                                   : valueOf(record, "Account") == submitter.account;
}

/// The limits of an account and of those above it.
void takeAccounts(std::optional<QueueRoom>& room, const std::vector<Record>& all, std::string account) {
  for (size_t depth = 0; !account.empty() && depth < all.size(); ++depth) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Record& record) {
      return valueOf(record, "Account") == account && valueOf(record, "UserName").empty() &&
             record.count("ClusterName") > 0;
    });
    if (found == all.end()) return;
    take(room, *found, "GrpSubmitJobs", "account " + account);
    account = bare(valueOf(*found, "ParentAccount"));
  }
}

}  // namespace

std::optional<QueueRoom> accountRoom(const std::string& text, const Submitter& submitter) {
  const std::vector<Record> all = recordsOf(text, submitter);
  std::optional<QueueRoom> room;
  for (const Record& record : all) {
    if (!isAssociation(record, submitter)) continue;
    const std::string account = valueOf(record, "Account");
    take(room, record, "MaxSubmitJobs", "your association with account " + account);
    take(room, record, "GrpSubmitJobs", "your association with account " + account);
    takeAccounts(room, all, account);
  }
  const auto many = std::count_if(all.begin(), all.end(), [](const Record& r) { return r.count("QOS") > 0; });
  for (const Record& record : all) {
    const std::string qos = bare(valueOf(record, "QOS"));
    if (qos.empty() || (submitter.qos.empty() ? many > 1 : qos != submitter.qos)) continue;
    for (const char* key : {"GrpSubmitJobs", "MaxSubmitJobsPU", "MaxSubmitJobsPA"})
      take(room, record, key, "QOS " + qos);
  }
  return room;
}

}  // namespace muster::slurm
