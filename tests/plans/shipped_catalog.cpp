// SPDX-License-Identifier: Apache-2.0
// Loads the built plugins and reads their descriptions.
#include "tests/plans/shipped_catalog.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "plugins/abi/muster_plugin.h"

namespace muster::testing {
namespace {

void addPlugin(const std::string& name, Catalog& catalog) {
  const auto path = buildDir() / "plugins" / name / (name + ".so");
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto entry =
      reinterpret_cast<const muster_plugin_ops* (*)(uint32_t)>(dlsym(library, "muster_plugin_entry"));
  ASSERT_NE(entry, nullptr);
  auto described = parseJson(entry(MUSTER_ABI_MINOR)->describe());
  ASSERT_TRUE(described.ok()) << described.error().text();
  auto spec = pluginSpecFromDescribe(name, *described);
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  catalog.plugins[name] = *spec;
}

}  // namespace

const Catalog& shippedCatalog() {
  static const Catalog catalog = [] {
    Catalog made;
    for (const char* name :
         {"env", "compute", "memory", "collective", "ring", "rdma", "storage", "train", "exec"})
      addPlugin(name, made);
    return made;
  }();
  return catalog;
}

std::vector<std::string> shippedSkus() {
  const auto profiles = loadProfiles(sourceDir() / "plans/skus", &shippedCatalog());
  EXPECT_TRUE(profiles.ok()) << profiles.error().text();
  std::vector<std::string> names;
  if (profiles.ok())
    for (const auto& [name, profile] : *profiles) names.push_back(name);
  return names;
}

}  // namespace muster::testing
