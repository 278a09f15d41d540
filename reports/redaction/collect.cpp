// SPDX-License-Identifier: Apache-2.0
// Finds in a record what is to be redacted.
#include <algorithm>
#include <cctype>

#include "reports/redaction/addresses.h"
#include "reports/redaction/redaction.h"
#include "runner/core/text.h"
#include "runner/hosts/host_list.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

constexpr size_t kLeastSerial =
    6;  ///< characters; what vendors put where they have none ("0", "N/A") is shorter

bool hasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a key of the inventory names a serial, a UUID or another number that one machine alone has.
bool namesSerial(const std::string& key) {
  const std::string name = lowerCase(key);
  for (const char* part : {"serial", "uuid", "guid", "machine_id", "boot_id"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

/// Whether a key names a host, in the inventory, the launcher or the labels of a link.
bool namesHost(const std::string& key) {
  static const std::vector<std::string> keys = {"host",        "hostname", "nodename", "node",   "rendezvous",
                                                "master_addr", "a",        "b",        "culprit"};
  return contains(keys, lowerCase(key));
}

bool namesUser(const std::string& key) {
  static const std::vector<std::string> keys = {"user", "username", "logname", "approver", "slurm_job_user"};
  return contains(keys, lowerCase(key));
}

/// Versions have four numbers as well; a key tells them from addresses.
bool namesVersion(const std::string& key) {
  const std::string name = lowerCase(key);
  for (const char* part : {"version", "firmware", "bios"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

void Redaction::addUser(const std::string& user) {
  if (user != "root" && user != "git") add(Secret::kUser, user);  // these are nobody
}

void Redaction::collectUsers(const std::string& text) {
  for (const std::string_view folder : {"/home/", "/Users/"})
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at + 1)) {
      const size_t begin = at + folder.size();
      const size_t end = std::min(text.find_first_of("/ \t\n\"':;,", begin), text.size());
      addUser(text.substr(begin, end - begin));
    }
  constexpr std::string_view kScheme = "://";  // ssh://user:password@host
  for (size_t at = text.find(kScheme); at != std::string::npos; at = text.find(kScheme, at + 1)) {
    const size_t begin = at + kScheme.size();
    const size_t end = std::min(text.find_first_of("/?# \t\r\n\"'<>", begin), text.size());
    const size_t host = text.substr(begin, end - begin).rfind('@');
    if (host == std::string::npos) continue;
    const std::string who = text.substr(begin, host);
    addUser(who.substr(0, who.find(':')));
    if (who.find(':') != std::string::npos) add(Secret::kUser, who.substr(who.find(':') + 1));
  }
}

void Redaction::collectTexts(const Json& value, const std::string& key) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (namesSerial(key) && text.size() >= kLeastSerial && hasDigit(text)) add(Secret::kSerial, text);
    if (namesUser(key)) addUser(text);
    if (const std::string host = text.substr(0, text.find(':'));
        namesHost(key) && isPlainName(host) && addressesIn(text).empty())
      addHost(host);
    if (lowerCase(key).find("nodelist") != std::string::npos)
      if (const auto hosts = hostsOf(text); hosts.ok())
        for (const std::string& host : *hosts) addListedHost(host);
    if (!namesVersion(key))
      for (const std::string& address : addressesIn(text)) add(Secret::kAddress, address);
    collectUsers(text);
  }
  if (!value.is_structured()) return;
  for (const auto& [name, item] : value.items()) collectTexts(item, value.is_object() ? name : key);
}

void Redaction::addHost(const std::string& host) {
  const bool letters = std::any_of(host.begin(), host.end(),
                                   [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  if (!letters || devices_.count(host) > 0 || host == "localhost" || host == "none") return;
  add(Secret::kHost, host);
  if (const size_t dot = host.find('.'); dot != std::string::npos) addHost(host.substr(0, dot));
}

void Redaction::addListedHost(const std::string& host) {
  if (kept_ > kMostKept) return;
  const size_t before = names_.size();
  addHost(host);
  kept_ += (names_.size() - before) * (sizeof(std::string) + host.size());
}

void Redaction::collect(const Record& record) {
  listed_ = 0;
  for (const DevicePart& part : devicesOf(record)) devices_.insert(part.id);
  addHost(record.node);
  add(Secret::kSerial, record.bootId);
  if (const Json& host = inventoryPart(record, "host"); host.is_object()) addHost(textAt(host, "name"));
  collectTexts(muster::toJson(record), "");
  tooMany_ = tooMany_ || listed_ > kMostListed || kept_ > kMostKept;
}

}  // namespace muster
