// SPDX-License-Identifier: Apache-2.0
// Finds in a record what is to be redacted.
#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "reports/redaction/redaction.h"
#include "runner/core/text.h"
#include "runner/hosts/host_list.h"
#include "runner/record/findings/parts.h"

namespace muster {
namespace {

constexpr size_t kLeastSerial = 6;  ///< characters; what vendors put where they have none ("0", "N/A") is shorter

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

/// An IPv4 or IPv6 address that could be anybody's: not this machine's own, not the one that means all.
bool isAddress(const std::string& text) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) return bytes[0] != 127 && text != "0.0.0.0";
  const bool groups = std::count(text.begin(), text.end(), ':') >= 3 && hasDigit(text);
  return groups && inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

/// Six groups of two hexadecimal digits.
bool isMac(const std::string& text) {
  if (text.size() != 17) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if ((i % 3 == 2) != (text[i] == ':')) return false;
  return true;
}

constexpr std::string_view kAddressCharacters = "0123456789abcdefABCDEF:.";

}  // namespace

void Redaction::collectAddresses(const std::string& text) {
  for (size_t at = text.find_first_of(kAddressCharacters); at != std::string::npos;) {
    const size_t end = std::min(text.find_first_not_of(kAddressCharacters, at), text.size());
    std::string word = text.substr(at, end - at);
    while (!word.empty() && (word.back() == '.' || word.back() == ':')) word.pop_back();
    if (const size_t port = word.rfind(':'); word.find('.') != std::string::npos && port != std::string::npos)
      word.resize(std::min(port, word.size()));  // 10.0.0.1:29400
    if (isAddress(word) || isMac(word)) add(Secret::kAddress, word);
    at = text.find_first_of(kAddressCharacters, end);
  }
}

void Redaction::collectUsers(const std::string& text) {
  for (const std::string_view folder : {"/home/", "/Users/"})
    for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at + 1)) {
      const size_t begin = at + folder.size();
      const size_t end = std::min(text.find_first_of("/ \t\n\"':;,", begin), text.size());
      add(Secret::kUser, text.substr(begin, end - begin));
    }
}

void Redaction::collectTexts(const Json& value, const std::string& key) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (namesSerial(key) && text.size() >= kLeastSerial && hasDigit(text)) add(Secret::kSerial, text);
    if (namesUser(key) && text != "root") add(Secret::kUser, text);
    if (const std::string host = text.substr(0, text.find(':'));
        namesHost(key) && isPlainName(host) && !isAddress(host))
      addHost(host);
    if (lowerCase(key).find("nodelist") != std::string::npos)
      if (const auto hosts = expandHostList(text); hosts.ok())
        for (const std::string& host : *hosts) addHost(host);
    collectAddresses(text);
    collectUsers(text);
  }
  if (!value.is_structured()) return;
  for (const auto& [name, item] : value.items()) collectTexts(item, value.is_object() ? name : key);
}

void Redaction::addHost(const std::string& host) {
  const bool letters = std::any_of(host.begin(), host.end(),
                                   [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
  if (!letters || devices_.count(host) > 0 || host == "localhost") return;
  add(Secret::kHost, host);
  if (const size_t dot = host.find('.'); dot != std::string::npos) addHost(host.substr(0, dot));
}

void Redaction::collect(const Record& record) {
  for (const DevicePart& part : devicesOf(record)) devices_.insert(part.id);
  addHost(record.node);
  add(Secret::kSerial, record.bootId);
  if (const Json& host = inventoryPart(record, "host"); host.is_object()) addHost(textAt(host, "name"));
  collectTexts(muster::toJson(record), "");
}

}  // namespace muster
