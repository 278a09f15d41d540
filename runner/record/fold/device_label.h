// SPDX-License-Identifier: Apache-2.0
// The label "device" beside the field "device": most often the same, then it is written once.
#pragma once

#include "runner/metrics/measurement.h"

namespace muster {

/// Takes the label "device" off a measurement or verdict where the field says the same. Where there is a
/// device and no such label, "device_label" says false.
void foldDeviceLabel(Json& object);

/// Puts the label back.
Status unfoldDeviceLabel(Json& object, const std::string& path);

/// The labels without a "device" that only repeats `device`: what groups have in common.
std::string sharedLabelsText(const Labels& labels, const std::string& device);

}  // namespace muster
