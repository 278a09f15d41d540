// SPDX-License-Identifier: Apache-2.0
// What perftest prints, read strictly: one table, one row, of the size that was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/interfaces/rdma.h"

namespace muster {

/// Reads the table of ib_write_bw (with --report_gbits) or ib_send_lat, as perftest 4.5 and later print it.
/// An error quotes what was found; a figure that is zero, not finite or out of order is one too.
Result<RdmaFigure> parsePerftest(RdmaMethod method, std::string_view output, uint64_t bytes);

/// The last lines of an output in one, printable: what a process said before it failed.
std::string lastWords(std::string_view output);

}  // namespace muster
