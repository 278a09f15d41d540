// SPDX-License-Identifier: Apache-2.0
// Writes a profile as the TOML that profile_loader.cpp reads: what is loaded again is what was written.
#pragma once

#include <string>

#include "runner/sku/profile.h"

namespace muster {

/// `comment` becomes lines that begin with '#'. Quantities are written with their unit where that loses
/// nothing.
std::string profileToml(const Profile& profile, const std::string& comment);

/// "729.4 TFLOP/s", or the bare number in base units where a unit people read would round it by more than
/// 1e-9.
std::string exactQuantity(double value, const std::string& unit);

/// `text` between double quotes, as TOML wants it.
std::string tomlText(const std::string& text);

}  // namespace muster
