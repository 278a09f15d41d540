// SPDX-License-Identifier: Apache-2.0
// Addresses and ids as people and programs write them: found in texts, and in their other writings.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// The IP and hardware addresses that stand in `text`, as they are written there: "10.0.0.1" of
/// "10.0.0.1:29400", "fe80::1" of "[fe80::1%eth0]", "0c-42-a1-12-34-56". Not those that every machine has
/// (127.0.0.1, ::1) or nobody (ff:ff:ff:ff:ff:ff), and nothing that only looks alike: times, versions
/// (v1.2.3.4), names (std::abs), dates.
std::vector<std::string> addressesIn(const std::string& text);

/// The same in other writings, in small letters: of a hardware address or GUID with ':', '-', '.' or nothing
/// between its digits; of a UUID without its prefix ("GPU-") and without dashes. Empty: it has no other.
std::vector<std::string> otherWritings(const std::string& value);

}  // namespace muster
