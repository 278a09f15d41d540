// SPDX-License-Identifier: Apache-2.0
// The real modules beside backend_cuda.so, and one of NVIDIA's libraries missing: only what needs it stops,
// and says which it is and what to do. The library is hidden from the loader (tests/fakes/hidden), wherever
// it is.
#include "kernels/cuda/modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "kernels/cuda/toolkit_libraries.h"
#include "tests/support/process.h"

namespace muster::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

/// A folder with the modules of this build.
class CudaModules : public ::testing::Test {
 protected:
  CudaModules() {
    for (const char* name : {"blas", "dnn", "nccl"}) {
      const std::string file = std::string("cuda_") + name + ".so";
      const fs::path built = testing::buildDir() / "kernels/cuda" / name / file;
      if (fs::exists(built)) fs::create_symlink(built, folder_.path() / file);
    }
  }
  [[nodiscard]] bool hasTraining() const { return fs::exists(folder_.path() / "cuda_dnn.so"); }

  /// What opening each module says where `hidden` cannot be found.
  [[nodiscard]] std::map<std::string, std::string> said(const std::string& hidden) const {
    testing::ProcessOptions options;
    options.environment["LD_AUDIT"] = (testing::buildDir() / "tests/fakes/hidden/hidden-library.so").string();
    options.environment["MUSTER_FAKE_HIDDEN"] = hidden;
    const auto ran = testing::runProcess(
        {(testing::buildDir() / "tests/kernels/cuda/open-cuda-modules").string(), folder_.path().string()},
        options);
    EXPECT_EQ(ran.exitCode, 0) << ran.err;
    std::map<std::string, std::string> words;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) words[line.substr(0, colon)] = line.substr(colon + 2);
    }
    EXPECT_EQ(words.size(), 3u) << ran.out << ran.err;
    return words;
  }

  testing::TempDir folder_;
};

/// One line that names the library and says what to do.
void expectNamed(const std::string& text, const std::string& library, const std::string& holds) {
  EXPECT_THAT(text, HasSubstr(library + ": GPUs cannot do " + holds + ": "));
  EXPECT_THAT(text, HasSubstr("cannot open shared object file"));
  EXPECT_THAT(text, HasSubstr("install it, or set LD_LIBRARY_PATH or CUDA_HOME to where it is"));
}

TEST_F(CudaModules, OpenWhereEveryLibraryIs) {
  auto words = said("");
  EXPECT_EQ(words["blas"], "opened");
  EXPECT_EQ(words["nccl"], "opened");
  if (!hasTraining()) GTEST_SKIP() << "this toolkit has no cuDNN, so this build has no cuda_dnn.so";
  EXPECT_EQ(words["dnn"], "opened");
}

TEST_F(CudaModules, WithoutCudnnOnlyTrainingStops) {
  auto words = said(kCudnn);
  EXPECT_EQ(words["blas"], "opened");
  EXPECT_EQ(words["nccl"], "opened");
  expectNamed(words["dnn"], "libcudnn.so.9", "training");
}

TEST_F(CudaModules, WithoutNvrtcOnlyTrainingStops) {
  auto words = said(kNvrtc);
  EXPECT_EQ(words["blas"], "opened");
  EXPECT_EQ(words["nccl"], "opened");
  expectNamed(words["dnn"], kNvrtc, "training");
}

TEST_F(CudaModules, WithoutNcclOnlyCommunicatorsStop) {
  auto words = said(kNccl);
  EXPECT_EQ(words["blas"], "opened");
  expectNamed(words["nccl"], "libnccl.so.2", "communicators");
  EXPECT_THAT(words["dnn"], Not(HasSubstr("libnccl")));
}

TEST_F(CudaModules, WithoutCublasProductsAndTrainingStop) {
  auto words = said(kCublasLt);
  expectNamed(words["blas"], kCublasLt, "matrix operations");
  expectNamed(words["dnn"], kCublasLt, "training");
  EXPECT_EQ(words["nccl"], "opened");
}

TEST_F(CudaModules, OneThatIsNotInstalledIsNamed) {
  fs::remove(folder_.path() / "cuda_blas.so");
  auto words = said("");
  EXPECT_THAT(
      words["blas"],
      HasSubstr("cuda_blas.so: GPUs cannot do matrix operations: cannot find the module: No such file"));
  EXPECT_EQ(words["nccl"], "opened");
}

TEST_F(CudaModules, OneOfAnotherBuildIsRefused) {
  fs::remove(folder_.path() / "cuda_nccl.so");
  fs::create_symlink(testing::buildDir() / "tests/kernels/fakes/backend_empty.so",
                     folder_.path() / "cuda_nccl.so");
  auto words = said("");
  EXPECT_THAT(words["nccl"], HasSubstr("this cuda_nccl.so is of another build"));
  EXPECT_EQ(words["blas"], "opened");
}

}  // namespace
}  // namespace muster::cuda
