// SPDX-License-Identifier: Apache-2.0
// The parameters of test "command".
#pragma once

#include <cstdint>

#include "plugins/exec/values.h"
#include "plugins/sdk/params.h"

namespace muster::exec {

struct CommandParams {
  std::string program;
  sdk::Names args, environment, values;
  double timeLimit = 0;
  int exitCode = 0;
  uint64_t outputLimit = 0;
  std::string parser;

  std::vector<ValueRule> rules;  ///< follow from `values`

  void declare(sdk::ParamTable& param) {
    param("program", program, "",
          "absolute path of the program, in one of the directories of MUSTER_EXEC_DIR");
    param("args", args, {}, "arguments of the program, passed unchanged; no shell reads them");
    param("environment", environment, {},
          "names of environment variables that it gets from Muster; all others are removed");
    param("time_limit", timeLimit, "s", "1m", {"1s", "24h"},
          "the program is killed after this time; set the stage's timeout above it");
    param("exit_code", exitCode, 0, {0, 255}, "required exit code");
    param("output_limit", outputLimit, "B", "1 MiB", {"1 KiB", "64 MiB"},
          "maximum size of its output; more is an error");
    param("parser", parser, "none", parsers(),
          "format in which its standard output is read; none: the output is not read");
    param("values", values, {},
          "what to read: \"NAME{LABEL=VALUE} UNIT: PLACE\"; PLACE is a JSON pointer or a regular expression "
          "with the group (?P<value>...)");
  }
  Status complete();

 private:
  /// none, json, regex, and the formats of `muster import`.
  static sdk::Names parsers();
};

}  // namespace muster::exec
