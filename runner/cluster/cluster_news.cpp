// SPDX-License-Identifier: Apache-2.0
// Writes node 0's news into its store, and reads them. See cluster_news.h.
#include "runner/cluster/cluster_news.h"

#include <utility>

#include "runner/core/json.h"
#include "runner/core/text.h"

namespace muster {

void ClusterNews::publish() {
  std::string text;
  {
    std::unique_lock lock(node_.mutex);
    while (telling_) node_.tasks->wait(lock, node_.options.beat);
    text = dumpJson({{"status", last_.status},
                     {"round", last_.round},
                     {"culprit", last_.culprit.text},
                     {"ranks", last_.culprit.ranks},
                     {"open", last_.open},
                     {"decided", last_.decided},
                     {"decision", last_.decision}});
    if (text == told_ || last_.status.empty()) return;  // before its first status node 0 has no news
    telling_ = true;
  }
  const Status told = node_.client->set(key(), text);
  node_.answered(told);
  const std::lock_guard lock(node_.mutex);
  told_ = told.ok() ? text : "";
  telling_ = false;
  node_.tasks->notify();
}

void ClusterNews::take(const std::string& text) {
  const auto json = parseJson(text);
  if (!json.ok()) return;
  News news;
  JsonReader reader(*json, "news");
  reader.read("status", news.status);
  reader.read("round", news.round);
  reader.read("culprit", news.culprit.text);
  reader.each("ranks", [&](const Json& rank, const std::string& path) -> Status {
    if (!rank.is_number_integer()) return Error{ErrorCode::kProtocol, "no rank", path};
    news.culprit.ranks.insert(rank.get<int>());
    return {};
  });
  reader.read("open", news.open);
  reader.read("decided", news.decided);
  reader.read("decision", news.decision);
  if (!reader.ok()) return;
  news.culprit.text = reasonText(news.culprit.text);
  const std::lock_guard lock(node_.mutex);
  if (news.status != last_.status) node_.hurry = true;
  last_ = std::move(news);
  node_.tasks->notify();
}

}  // namespace muster
