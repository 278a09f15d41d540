// SPDX-License-Identifier: Apache-2.0
// Fetches one file over HTTPS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "runner/core/result.h"

namespace muster::train {

/// A file on the network and what it must be.
struct RemoteFile {
  std::string url;
  std::string sha256;
  uint64_t limit = 1ULL << 30;  ///< bytes; a longer answer is cut off and refused
  const char* protocol =
      "https";  ///< that libcurl may speak, also after a redirection; tests have no certificate
};

/// Called now and then with the bytes got and wanted (0: unknown); false stops the transfer.
using FetchProgress = std::function<bool(uint64_t got, uint64_t wanted)>;

/// Puts the file at `path`. Bytes gather in `path`.part, which must not be there or be this user's own
/// (openOwnFile): a transfer that was cut off goes on from there, this time or the next. The file appears at
/// `path` only with the right checksum; a wrong one removes the bytes and is an error. libcurl.so.4 of the
/// system is opened on first use; without it the error says how to install it.
Status fetchFile(const RemoteFile& file, const std::filesystem::path& path, const FetchProgress& progress);

}  // namespace muster::train
