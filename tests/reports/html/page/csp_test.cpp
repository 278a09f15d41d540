// SPDX-License-Identifier: Apache-2.0
// The policy's digests, against known values (openssl dgst -sha256 -binary | base64).
#include "reports/html/page/csp.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Csp, DigestsExactBytes) {
  EXPECT_EQ(cspDigest(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(cspDigest("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
}

TEST(Csp, AllowsNothingButTheTwoInlineParts) {
  const std::string policy = contentSecurityPolicy("a", "b");
  EXPECT_EQ(policy.find("default-src 'none';"), 0u);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http"), std::string::npos);
  EXPECT_EQ(policy.find('*'), std::string::npos);
  EXPECT_NE(policy.find("style-src '" + cspDigest("a") + "'"), std::string::npos);
  EXPECT_NE(policy.find("script-src '" + cspDigest("b") + "'"), std::string::npos);
}

}  // namespace
}  // namespace muster
