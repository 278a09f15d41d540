// SPDX-License-Identifier: Apache-2.0
// The Content-Security-Policy of a page that may load nothing.
#pragma once

#include <string>

namespace muster {

/// "sha256-..." of the exact bytes between the tags of an inline style or script.
std::string cspDigest(const std::string& content);

/// The policy: nothing is loaded from anywhere; only this style and this script count, and the icon inside
/// the page.
std::string contentSecurityPolicy(const std::string& style, const std::string& script);

}  // namespace muster
