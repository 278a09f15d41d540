// SPDX-License-Identifier: Apache-2.0
// A TCP transport of Gloo on which both ends of a connection prove that they belong to the group.
#pragma once

#include <gloo/transport/tcp/device.h>

#include <memory>
#include <string>

namespace muster::host {

/// Gloo takes whoever connects first for the peer that it waits for, and believes the offsets in its
/// messages. So before anything is read, each end sends a MAC of both ranks by `secret`, and without it the
/// pair fails. Only the group's ranks may know the secret: it is meant for groups whose store is closed to
/// others. Nothing is encrypted.
std::shared_ptr<gloo::transport::Device> authenticatedDevice(const gloo::transport::tcp::attr& attributes,
                                                             std::string secret);

}  // namespace muster::host
