// SPDX-License-Identifier: Apache-2.0
// Interfaces from getifaddrs, /proc/net/route and sysfs.
#include "kernels/host/gloo/endpoint.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "runner/core/text.h"

namespace muster::host {
namespace {

namespace fs = std::filesystem;

struct Interface {
  Endpoint endpoint;
  bool loopback = false;
  bool v4 = false;
};

std::string numeric(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const void* bytes = address.sa_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                          : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return inet_ntop(address.sa_family, bytes, text, sizeof text) == nullptr ? "" : text;
}

/// Link-local IPv6 addresses need a scope and are no use to peers.
bool isUsable(const sockaddr& address) {
  if (address.sa_family == AF_INET) return true;
  return address.sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

/// Every usable address of the interfaces that are up, IPv4 first.
Result<std::vector<Interface>> readInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    return Error{ErrorCode::kIo, "the system does not list its network interfaces", "getifaddrs"};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || !isUsable(*entry->ifa_addr))
      continue;
    found.push_back({{entry->ifa_name, numeric(*entry->ifa_addr)},
                     (entry->ifa_flags & IFF_LOOPBACK) != 0,
                     entry->ifa_addr->sa_family == AF_INET});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.v4 > b.v4; });
  return found;
}

std::string describe(const std::vector<Interface>& interfaces) {
  std::vector<std::string> names;
  names.reserve(interfaces.size());
  for (const Interface& one : interfaces)
    names.push_back(one.endpoint.interface + " (" + one.endpoint.address + ")");
  return names.empty() ? "none that is up and has an address" : join(names, ", ");
}

/// Interface of the default route of IPv4, or an empty text.
std::string defaultRoute() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  std::getline(routes, line);  // the headings
  while (std::getline(routes, line)) {
    std::istringstream fields(line);
    std::string name, destination;
    if (fields >> name >> destination && destination == "00000000") return name;
  }
  return "";
}

Result<Endpoint> chooseFrom(const std::vector<Interface>& all) {
  std::vector<Interface> outward;
  const std::string route = defaultRoute();
  for (const Interface& one : all) {
    if (one.loopback) continue;
    if (one.endpoint.interface == route) return one.endpoint;
    const auto same = [&](const Interface& other) {
      return other.endpoint.interface == one.endpoint.interface;
    };
    if (std::none_of(outward.begin(), outward.end(), same)) outward.push_back(one);
  }
  if (outward.size() == 1) return outward[0].endpoint;
  return Error{ErrorCode::kUsage,
               "cannot tell which network interface leads to the other ranks; found " + describe(outward) +
                   "; name one as the stage's `interface`",
               ""};
}

}  // namespace

Result<Endpoint> chooseEndpoint(const std::string& wanted, bool allOnThisHost) {
  MUSTER_TRY(std::vector<Interface> all, readInterfaces());
  if (wanted.empty() && !allOnThisHost) return chooseFrom(all);
  for (const Interface& one : all) {
    const bool meant =
        wanted.empty() ? one.loopback : wanted == one.endpoint.interface || wanted == one.endpoint.address;
    if (meant) return one.endpoint;
  }
  return Error{ErrorCode::kNotFound,
               (wanted.empty() ? std::string("no loopback interface is up")
                               : "there is no network interface or address \"" + printable(wanted, 64) +
                                     "\" that is up") +
                   "; found " + describe(all),
               ""};
}

std::string networkIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat net = {};
  stat("/proc/self/ns/net", &net);
  return boot + "/" + std::to_string(net.st_ino);
}

std::map<std::string, Traffic> readTraffic(const std::string& root) {
  std::map<std::string, Traffic> traffic;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const auto counter = [&](const char* name, uint64_t& value) {
      return static_cast<bool>(std::ifstream(entry.path() / "statistics" / name) >> value);
    };
    Traffic one;
    if (counter("rx_bytes", one.received) && counter("tx_bytes", one.sent))
      traffic[entry.path().filename().string()] = one;
  }
  return traffic;
}

std::map<std::string, Traffic> carried(const std::map<std::string, Traffic>& before,
                                       const std::map<std::string, Traffic>& after) {
  std::map<std::string, Traffic> deltas;
  for (const auto& [name, now] : after) {
    const auto then = before.find(name);
    if (then == before.end() || now.received < then->second.received || now.sent < then->second.sent)
      continue;
    deltas[name] = {now.received - then->second.received, now.sent - then->second.sent};
  }
  return deltas;
}

}  // namespace muster::host
