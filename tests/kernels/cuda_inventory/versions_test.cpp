// SPDX-License-Identifier: Apache-2.0
// Whether the libraries found at run time fit what a build was compiled with.
#include "kernels/cuda/inventory/versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LibraryVersions kBuilt = {13000, {91900, 13000}, {22809, 0}};

TEST(Misfits, ThereAreNoneOfEqualOrNewerLibraries) {
  EXPECT_THAT(misfits(kBuilt, {0, {91900, 13000}, {22809, 0}}), IsEmpty());
  EXPECT_THAT(misfits(kBuilt, {0, {92000, 13010}, {23001, 0}}), IsEmpty());
}

TEST(Misfits, ThereAreNoneOfWhatIsMissingOrDoesNotTell) {
  EXPECT_THAT(misfits(kBuilt, {}), IsEmpty());
  EXPECT_THAT(misfits(kBuilt, {0, {91900, 0}, {}}), IsEmpty());
}

TEST(Misfits, NameALibraryForAnotherCuda) {
  EXPECT_THAT(
      misfits(kBuilt, {0, {91900, 12090}, {22809, 0}}),
      ElementsAre("cuDNN 9.19.0 is made for CUDA 12.9, this build for CUDA 13.0; install the cuDNN for "
                  "CUDA 13"));
}

TEST(Misfits, NameEachLibraryThatIsOlderThanTheBuilds) {
  EXPECT_THAT(misfits(kBuilt, {0, {90501, 13000}, {22105, 0}}),
              ElementsAre(AllOf(HasSubstr("cuDNN 9.5.1 is older than 9.19.0"), HasSubstr("install 9.19.0")),
                          AllOf(HasSubstr("NCCL 2.21.5 is older than 2.28.9"), HasSubstr("install 2.28.9"))));
}

TEST(Misfits, ABuildWithoutTheLibrariesHasNone) {
  EXPECT_THAT(misfits({}, {0, {90501, 12040}, {22105, 0}}), IsEmpty());
}

TEST(BuiltWith, KnowsItsToolkit) {
  const LibraryVersions built = builtWith();
  EXPECT_EQ(built.cuda, builtForCuda());
  if (built.cuda == 0) GTEST_SKIP() << "this build has no CUDA toolkit";
  EXPECT_GT(built.nccl.version, 21800u);
}

}  // namespace
}  // namespace muster::cuda
