// SPDX-License-Identifier: Apache-2.0
// Networks of strangers, counted when one of them has to go.
#include "runner/rendezvous/store_strangers.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace muster {
namespace {

/// 4 or 16 bytes; none of what is neither IPv4 nor IPv6.
std::string addressOf(const sockaddr_storage& end) {
  const std::string_view bytes(reinterpret_cast<const char*>(&end), sizeof end);
  if (end.ss_family == AF_INET) return std::string(bytes.substr(offsetof(sockaddr_in, sin_addr), 4));
  if (end.ss_family != AF_INET6) return "";
  const std::string address(bytes.substr(offsetof(sockaddr_in6, sin6_addr), 16));
  const bool mapped = IN6_IS_ADDR_V4MAPPED(reinterpret_cast<const in6_addr*>(address.data()));
  return mapped ? address.substr(12) : address;
}

}  // namespace

std::string StoreStrangers::networkOf(const sockaddr_storage& peer, const sockaddr_storage& own) {
  const std::string address = addressOf(peer);
  const bool loopback = address.size() == 4 && address[0] == IN_LOOPBACKNET;
  return loopback || address == addressOf(own) ? "this machine" : address.substr(0, 8);
}

StorePeerId StoreStrangers::crowded() const {
  struct Crowd {
    StorePeerId oldest;
    size_t size;
  };
  std::map<std::string_view, Crowd> crowds;
  for (const auto& [id, network] : strangers_) ++crowds.try_emplace(network, Crowd{id, 0}).first->second.size;
  const auto smaller = [](const auto& a, const auto& b) {
    return a.second.size != b.second.size ? a.second.size < b.second.size : a.second.oldest > b.second.oldest;
  };
  return std::max_element(crowds.begin(), crowds.end(), smaller)->second.oldest;
}

}  // namespace muster
