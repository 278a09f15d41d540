// SPDX-License-Identifier: Apache-2.0
// Parses and checks store addresses.
#include "runner/rendezvous/wire/store_address.h"

#include <fmt/format.h>

#include <charconv>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kMaxHost = 253;  // of a DNS name

Error badAddress(std::string_view text, const std::string& why) {
  return {
      ErrorCode::kUsage,
      fmt::format("\"{}\" is not a store address: {}; required: host:port or host, such as node-0:29400 or "
                  "[fd00::1]:29400",
                  printable(text, 100), why),
      ""};
}

}  // namespace

std::string StoreAddress::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + (port == 0 ? "" : fmt::format(":{}", port));
}

Result<StoreAddress> parseStoreAddress(std::string_view text) {
  // Behind a bracket: within stands an address without a port.
  const size_t colon = text.ends_with(']') ? std::string_view::npos : text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return badAddress(text, "an IPv6 address must be in brackets");
  }
  if (host.empty() || host.size() > kMaxHost)
    return badAddress(text, fmt::format("a host name of {} characters", host.size()));
  for (const char c : host)
    if (static_cast<unsigned char>(c) <= ' ' || c == '/' || c == '[' || c == ']' || c == '\x7f')
      return badAddress(text, "the host name contains an invalid character");
  if (colon == std::string_view::npos) return StoreAddress{std::string(host), 0};
  const std::string_view digits = text.substr(colon + 1);
  int port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (failure != std::errc() || end != digits.data() + digits.size() || port < 1 || port > 65535)
    return badAddress(text, "its port is not 1 to 65535");
  return StoreAddress{std::string(host), static_cast<uint16_t>(port)};
}

}  // namespace muster
