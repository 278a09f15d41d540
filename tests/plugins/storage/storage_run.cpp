// SPDX-License-Identifier: Apache-2.0
// See storage_run.h.
#include "tests/plugins/storage/storage_run.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/plugins/scenario.h"

namespace muster::testing {
namespace fs = std::filesystem;

StorageRun::StorageRun() {
  setenv("TMPDIR", buildDir().c_str(), 1);
  unsetenv("MUSTER_FIO_DIR");
  dir_ = std::make_unique<TempDir>();
  fs::create_directories(data());
  context["scope"] = "node";
  context["device"] = nullptr;
  context["artifact_dir"] = (dir().path() / "artifacts").string();
}

StorageRun::~StorageRun() {
  unsetenv("MUSTER_FIO_DIR");
}

Json StorageRun::small(const std::string& pattern) {
  return {{"pattern", pattern}, {"block_size", "64 KiB"}, {"size", "4 MiB"},
          {"duration", "1s"},   {"queue_depth", 4},       {"keep_free", "16 MiB"}};
}

CaseResult StorageRun::onDisk(const std::string& test, Json params) {
  if (!params.contains("directory")) params["directory"] = data().string();
  return plugin.run(host, test, params, context);
}

CaseResult StorageRun::onSim(const std::string& test, const std::string& faults, const Json& params, int rank,
                             int ranks) {
  const std::string storage =
      "[storage]\nread_bandwidth = \"6 GB/s\"\nwrite_bandwidth = \"3 GB/s\"\nread_operations = 600000\n"
      "write_operations = 150000\nfile_rate = 20000\nnoise = 0\nspread = 0\n";
  Json simulated =
      contextFor("sim", "", dir().write("scenario.toml", scenarioText(storage + faults)).string());
  simulated["scope"] = ranks > 1 ? "cluster" : "node";
  simulated["device"] = nullptr;
  simulated["artifact_dir"] = context["artifact_dir"];
  simulated["rank"] = rank;
  simulated["world_size"] = ranks;
  simulated["node"] = {{"rank", rank}, {"count", ranks}, {"name", "n"}};
  return plugin.run(host, test, params, simulated);
}

void StorageRun::fakeFio(const std::string& script) {
  const fs::path fake = dir().write("bin/fio", "#!/bin/sh\nFIO=/usr/bin/fio\n" + script + "\n");
  fs::permissions(fake, fs::perms(0755));
  setenv("MUSTER_FIO_DIR", fake.parent_path().c_str(), 1);
}

std::vector<std::string> StorageRun::left() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(data())) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace muster::testing
