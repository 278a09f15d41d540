// SPDX-License-Identifier: Apache-2.0
// Builds the Content-Security-Policy from the digests of inline styles and scripts.
#include "reports/html/page/csp.h"

#include "runner/system/files.h"

namespace muster {
namespace {

unsigned hexValue(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

/// Base64 of bytes written as hexadecimal digits.
std::string base64OfHex(const std::string& hex) {
  static const char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 6) {
    const std::string part = hex.substr(i, 6);
    unsigned bits = 0;
    for (size_t k = 0; k < 6; ++k) bits = bits << 4 | (k < part.size() ? hexValue(part[k]) : 0);
    const size_t bytes = part.size() / 2;
    for (size_t k = 0; k < 4; ++k) out += k <= bytes ? kDigits[bits >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace

std::string cspDigest(const std::string& content) {
  return "sha256-" + base64OfHex(sha256Hex(content));
}

std::string contentSecurityPolicy(const std::string& style, const std::string& script) {
  return "default-src 'none'; style-src '" + cspDigest(style) + "'; script-src '" + cspDigest(script) +
         "'; img-src data:; base-uri 'none'; form-action 'none'";
}

}  // namespace muster
