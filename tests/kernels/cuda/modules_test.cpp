// SPDX-License-Identifier: Apache-2.0
// The real cuda backend and its modules, with each of NVIDIA's libraries missing, alone and in pairs: what
// needs it stops, says which it is and what to install, and all else works. Libraries are hidden from the
// loader (tests/fakes/hidden), wherever they are; the driver's are fakes.
#include "kernels/cuda/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "kernels/cuda/inventory/nvml/nvml.h"
#include "kernels/cuda/toolkit_libraries.h"
#include "runner/core/text.h"
#include "tests/fakes/nvml/scenario.h"
#include "tests/support/process.h"

namespace muster::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

const char* const kLibcuda = "libcuda.so.1";

struct Library {
  const char* name;  ///< of test cases
  const char* remedy;
};
const std::map<std::string, Library>& libraries() {
  static const std::map<std::string, Library> all = {
      {kCublasLt, {"CublasLt", "install the package libcublas-"}},
      {kCudnn, {"Cudnn", "install the package libcudnn9-cuda-"}},
      {kNccl, {"Nccl", "install the package libnccl2 or nvidia-nccl-cu"}},
      {kNvrtc, {"Nvrtc", "install the package cuda-nvrtc-"}},
      {kNvmlLibrary, {"Nvml", "install"}},
      {kLibcuda, {"Libcuda", "install all of driver"}},
  };
  return all;
}

/// What the backend does, as open-cuda-modules calls it, and the libraries that it needs; of several missing
/// ones the first is named.
struct Part {
  std::string name;
  const char* step;  ///< what the error says cannot be done
  std::vector<std::string> needs;
};
const std::vector<Part>& parts() {
  static const std::vector<Part> all = {
      {"blas", "GPUs cannot do matrix operations: ", {kCublasLt}},
      {"dnn", "GPUs cannot do training: ", {kCublasLt, kNvrtc, kCudnn}},
      {"nccl", "GPUs cannot do communicators: ", {kNccl}},
      {"inventory", "", {kNvmlLibrary}},
      {"device", "", {kNvmlLibrary, kLibcuda}},
  };
  return all;
}

using Words = std::map<std::string, std::string>;

/// A folder with the backend of this build.
class CudaModules : public ::testing::Test {
 protected:
  CudaModules() {
    const fs::path built = testing::buildDir() / "kernels/cuda";
    for (const char* file : {"backend_cuda.so", "blas/cuda_blas.so", "dnn/cuda_dnn.so", "nccl/cuda_nccl.so"})
      if (fs::exists(built / file))
        fs::create_symlink(built / file, folder_.path() / fs::path(file).filename());
  }
  [[nodiscard]] bool hasTraining() const { return fs::exists(folder_.path() / "cuda_dnn.so"); }

  /// What opening the "modules" or the "node" says where `hidden` cannot be found.
  [[nodiscard]] Words said(const std::string& what, const std::vector<std::string>& hidden) const {
    const fs::path tests = testing::buildDir() / "tests";
    const bool noDriver = std::count(hidden.begin(), hidden.end(), kLibcuda) > 0;
    const char* path = std::getenv("LD_LIBRARY_PATH");
    testing::ProcessOptions options;
    options.environment["LD_AUDIT"] = (tests / "fakes/hidden/hidden-library.so").string();
    options.environment["MUSTER_FAKE_HIDDEN"] = join(hidden, ":");
    options.environment["LD_LIBRARY_PATH"] = (tests / "fakes/nvml").string() + ":" +
                                             (tests / "fakes/driver").string() +
                                             (path == nullptr ? "" : ":" + std::string(path));
    // What the real NVML does without libcuda.so.1, by its header.
    options.environment[kScenarioVariable] =
        folder_
            .write("scenario.txt",
                   std::string("count 1\n") + (noDriver ? "call nvmlSystemGetCudaDriverVersion_v2 12\n" : ""))
            .string();
    const auto ran = testing::runProcess(
        {(tests / "kernels/cuda/open-cuda-modules").string(), folder_.path().string(), what}, options);
    EXPECT_EQ(ran.exitCode, 0) << "signal " << ran.signal << "\n" << ran.out << ran.err;
    Words words;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) words[line.substr(0, colon)] = line.substr(colon + 2);
    }
    return words;
  }

  testing::TempDir folder_;
};

using Missing = std::vector<std::string>;

class CudaLibraries : public CudaModules, public ::testing::WithParamInterface<Missing> {
 protected:
  [[nodiscard]] static bool isMissing(const std::string& soname) {
    return std::count(GetParam().begin(), GetParam().end(), soname) > 0;
  }

  static void expectRight(const Part& part, const std::string& text) {
    SCOPED_TRACE(part.name + ": " + text);
    const auto missing = std::find_if(part.needs.begin(), part.needs.end(), isMissing);
    if (missing != part.needs.end()) {
      EXPECT_THAT(text, HasSubstr(part.step));
      EXPECT_THAT(text, HasSubstr(*missing));
      EXPECT_THAT(text, HasSubstr(libraries().at(*missing).remedy));
    } else if (part.name == "device") {
      EXPECT_THAT(text, StartsWith("gpu0: CUDA sees no GPU at ")) << "the fake driver has none";
    } else {
      EXPECT_EQ(text, "opened");
    }
  }
};

TEST_P(CudaLibraries, StopOnlyWhatNeedsThem) {
  Words words = said("modules", GetParam());
  words.merge(said("node", GetParam()));
  for (const Part& part : parts())
    if (part.name != "dnn" || hasTraining()) expectRight(part, words[part.name]);
  if (!isMissing(kNvmlLibrary)) {
    EXPECT_EQ(words["software cudnn"] == "not found", isMissing(kCudnn)) << words["software cudnn"];
    EXPECT_EQ(words["software nccl"] == "not found", isMissing(kNccl)) << words["software nccl"];
    EXPECT_THAT(words["software fit"], isMissing(kLibcuda)
                                           ? HasSubstr("libcuda.so.1 of driver 580.95.05 is missing")
                                           : HasSubstr("yes"));
  }
  if (!hasTraining()) GTEST_SKIP() << "this toolkit has no cuDNN, so this build has no cuda_dnn.so";
}

/// None, each, and each pair.
std::vector<Missing> combinations() {
  std::vector<Missing> all = {{}};
  for (auto one = libraries().begin(); one != libraries().end(); ++one) {
    all.push_back({one->first});
    for (auto other = std::next(one); other != libraries().end(); ++other)
      all.push_back({one->first, other->first});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Without, CudaLibraries, ::testing::ValuesIn(combinations()), [](const auto& info) {
  std::string name;
  for (const std::string& soname : info.param) name += libraries().at(soname).name;
  return name.empty() ? "None" : name;
});

TEST_F(CudaModules, OneThatIsNotInstalledIsNamed) {
  fs::remove(folder_.path() / "cuda_blas.so");
  auto words = said("modules", {});
  EXPECT_THAT(
      words["blas"],
      HasSubstr("cuda_blas.so: GPUs cannot do matrix operations: cannot find the module: No such file"));
  EXPECT_EQ(words["nccl"], "opened");
}

TEST_F(CudaModules, OneOfAnotherBuildIsRefused) {
  fs::remove(folder_.path() / "cuda_nccl.so");
  fs::create_symlink(testing::buildDir() / "tests/kernels/fakes/backend_empty.so",
                     folder_.path() / "cuda_nccl.so");
  auto words = said("modules", {});
  EXPECT_THAT(words["nccl"], HasSubstr("this cuda_nccl.so is of another build"));
  EXPECT_EQ(words["blas"], "opened");
}

}  // namespace
}  // namespace muster::cuda
