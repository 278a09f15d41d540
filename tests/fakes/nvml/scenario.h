// SPDX-License-Identifier: Apache-2.0
// The scenario of the fake NVML: a text file that says what GPUs there are and what befalls them.
#pragma once

#include <map>
#include <string>
#include <vector>

/// The environment variable that names the scenario file, and the one that names the file whose existence
/// means that work has begun.
inline constexpr const char* kScenarioVariable = "MUSTER_FAKE_NVML";
inline constexpr const char* kWorkVariable = "MUSTER_FAKE_NVML_WORK";

/// One line of a scenario. Lines are words; `#` begins a comment:
///
///     driver 580.95.05              a fact of the node: driver, nvml, cuda, count, init (a return code)
///     header 12.9.79                another one: the version of nvml.h whose ids and structs it answers
///     (headers.h) gpu * name NVIDIA H100        a value of all GPUs, or of one by its number gpu 3
///     ecc_uncorrected 4 working    ... from when work has begun (see kWorkVariable) gpu 3 xid 79 working an
///     event call nvmlDeviceGetSerial 3    what a function returns, whatever it is asked gpu 3 call * 15 the
///     same for one GPU and all functions that take a handle call nvmlDeviceGetPowerUsage hang | crash
///
/// The last line that fits counts.
struct Line {
  int gpu = -1;  ///< -1: all
  std::string key;
  std::string value;
  bool working = false;
};

/// What the scenario says now.
class Scenario {
 public:
  /// Reads the file; the process ends with a message when there is none, or it is not understood.
  static void load();
  static const Scenario& loaded();

  /// The value of a fact of the node.
  std::string fact(const std::string& key, const std::string& otherwise) const;
  /// The value of a GPU's key, or `otherwise`.
  std::string text(int gpu, const std::string& key, const std::string& otherwise = "") const;
  double number(int gpu, const std::string& key, double otherwise) const;
  /// What a function is to do on a GPU (-1: none): "", a return code, "hang" or "crash".
  std::string behaviour(const std::string& function, int gpu) const;
  /// XIDs that befell a GPU so far.
  std::vector<int> xids(int gpu) const;

 private:
  std::map<std::string, std::string> facts_;
  std::vector<Line> lines_;
  std::vector<std::pair<Line, std::string>> calls_;  ///< and the function's name, or *
};
