// SPDX-License-Identifier: Apache-2.0
// fio as the engine of loads on files, under supervision.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugins/storage/params.h"
#include "plugins/storage/scratch.h"
#include "runner/import/fio_output.h"

namespace muster::storage {

/// Runs fio in a scratch directory, on one file there. Whatever fio does - hang, crash, print nonsense, move
/// nothing - is an error that names the phase and fio's last words.
class Engine {
 public:
  /// kUnsupported where fio is not installed. MUSTER_FIO_DIR in the environment says where it is, else PATH;
  /// no plan does. Programs that others could replace are refused.
  static Result<Engine> find(const Site& site, const FioParams& params, const Scratch& scratch);

  /// "fio-3.33 (/usr/bin/fio)"
  [[nodiscard]] const std::string& version() const { return version_; }

  /// Writes the whole file once, in the order of the case's pattern, each block with its checksum.
  Status layOut() const;
  /// The timed load.
  Result<StorageFigure> measure() const;

  /// What a check found.
  struct Check {
    uint64_t errors = 0;  ///< blocks that were wrong or could not be read
    std::string first;    ///< what fio says of the first one
  };
  /// Reads the whole file and compares each block with its checksum.
  Result<Check> verify() const;

 private:
  struct Run {
    FioDirection moved;
    uint64_t errors = 0;
    std::string said;  ///< its standard error
  };
  Engine(const Site& site, const FioParams& params, const Scratch& scratch)
      : site_(site), params_(params), scratch_(scratch) {}
  [[nodiscard]] Result<Run> run(const std::string& phase, const std::string& direction,
                                std::vector<std::string> more, double seconds) const;

  const Site& site_;
  const FioParams& params_;
  const Scratch& scratch_;
  std::string path_, version_;
};

}  // namespace muster::storage
