// SPDX-License-Identifier: Apache-2.0
// The host backend as a module: operations need host_blas.so, all else does not.
#include "kernels/interfaces/backend.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/process.h"

namespace muster {
namespace {

/// A folder with the real backend_host.so and a host_blas.so of the test's choice.
class HostBackend : public ::testing::Test {
 protected:
  HostBackend() { link("kernels/host/backend_host.so", "backend_host.so"); }
  void link(const std::string& built, const std::string& name) const {
    std::filesystem::create_symlink(testing::buildDir() / built, folder_.path() / name);
  }
  /// Opens cpu0 and its operations; the error's text, or an empty one.
  [[nodiscard]] std::string opsProblem() const {
    BackendOptions options;
    options.folder = folder_.path().string();
    auto backend = loadBackend("host", options);
    EXPECT_TRUE(backend.ok()) << backend.error().text();
    auto device = (*backend)->open("cpu0");
    EXPECT_TRUE(device.ok()) << device.error().text();
    auto ops = (*backend)->ops(**device);
    return ops.ok() ? "" : ops.error().text();
  }
  testing::TempDir folder_;
};

TEST_F(HostBackend, OpensItsOperations) {
  link("kernels/host/host_blas.so", "host_blas.so");
  EXPECT_EQ(opsProblem(), "");
}

TEST_F(HostBackend, NamesTheLibraryThatItsOperationsLack) {
  link("tests/kernels/fakes/backend_needy.so", "host_blas.so");
  const std::string problem = opsProblem();
  EXPECT_NE(problem.find("libfake-gone.so.1"), std::string::npos) << problem;
  EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
}

TEST_F(HostBackend, SaysThatItsOperationsAreNotInstalled) {
  const std::string problem = opsProblem();
  EXPECT_NE(problem.find("host_blas.so"), std::string::npos) << problem;
  EXPECT_NE(problem.find("they need oneDNN"), std::string::npos) << problem;
}

TEST_F(HostBackend, RefusesOperationsOfAnotherBuild) {
  link("tests/kernels/fakes/backend_empty.so", "host_blas.so");
  EXPECT_NE(opsProblem().find("of another build"), std::string::npos);
}

TEST_F(HostBackend, DropsVariablesThatSlowLibrariesDown) {
  link("kernels/host/host_blas.so", "host_blas.so");
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  EXPECT_EQ(opsProblem(), "");
  EXPECT_EQ(getenv("OPENBLAS_CORETYPE"), nullptr);
}

}  // namespace
}  // namespace muster
