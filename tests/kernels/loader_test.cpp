// SPDX-License-Identifier: Apache-2.0
// loadBackend() against real modules: another build, no backend at all, a missing library. openDevice() above
// it.
#include <gtest/gtest.h>

#include "kernels/interfaces/backend.h"
#include "kernels/loading/open_device.h"
#include "tests/support/process.h"

namespace muster {
namespace {

std::string refusal(const std::string& name, const std::string& folder) {
  BackendOptions options;
  options.folder = folder;
  auto backend = loadBackend(name, options);
  return backend.ok() ? "loaded" : backend.error().text();
}

std::string fakeFolder() {
  return (testing::buildDir() / "tests/kernels/fakes").string();
}
std::string hostFolder() {
  return (testing::buildDir() / "kernels/host").string();
}

TEST(LoadBackend, OpensTheHostBackend) {
  BackendOptions options;
  options.folder = hostFolder();
  auto backend = loadBackend("host", options);
  ASSERT_TRUE(backend.ok()) << backend.error().text();
  EXPECT_EQ((*backend)->name(), "host");
}

TEST(LoadBackend, RefusesAModuleOfAnotherBuild) {
  const std::string text = refusal("stale", fakeFolder());
  EXPECT_NE(text.find("of build 0.0.0+stale"), std::string::npos) << text;
  EXPECT_NE(text.find("backend_stale.so"), std::string::npos) << text;
}

TEST(LoadBackend, RefusesALibraryThatIsNotABackend) {
  EXPECT_NE(refusal("empty", fakeFolder()).find("lacks muster_backend_entry"), std::string::npos);
}

TEST(LoadBackend, NamesTheMissingLibrary) {
  const std::string text = refusal("needy", fakeFolder());
  EXPECT_NE(text.find("libfake-gone.so.1"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(LoadBackend, ListsTheBackendsThatAreThere) {
  const std::string text = refusal("tpu", fakeFolder());
  EXPECT_NE(text.find("found empty, needy, stale in"), std::string::npos) << text;
}

TEST(LoadBackend, SaysThatAFolderHasNone) {
  const testing::TempDir folder;
  EXPECT_NE(refusal("host", folder.path().string()).find("found no backend in"), std::string::npos);
}

TEST(LoadBackend, RefusesAFileThatIsNotALibrary) {
  const testing::TempDir folder;
  (void)folder.write("backend_text.so", "not a library\n");
  EXPECT_NE(refusal("text", folder.path().string()).find("cannot be loaded"), std::string::npos);
}

TEST(LoadBackend, RefusesNamesThatLeaveTheFolder) {
  EXPECT_NE(refusal("../../evil", fakeFolder()).find("not a plain name"), std::string::npos);
}

Json contextFor(const std::string& device) {
  return Json{{"backend", "host"},
              {"backend_dir", hostFolder()},
              {"node", {{"rank", 0}, {"count", 1}, {"name", "n"}}},
              {"device", {{"id", device}}}};
}

TEST(OpenDevice, OpensTheDeviceOfTheContext) {
  auto open = openDevice(contextFor("cpu0"));
  ASSERT_TRUE(open.ok()) << open.error().text();
  EXPECT_EQ(open->device->info().id, "cpu0");
}

TEST(OpenDevice, ListsTheDevicesWhenItIsAskedForAnother) {
  auto open = openDevice(contextFor("gpu7"));
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.error().text().find("no device \"gpu7\" on this host; found cpu0"), std::string::npos)
      << open.error().text();
}

TEST(OpenDevice, RefusesAContextWithoutADevice) {
  Json context = contextFor("cpu0");
  context["device"] = nullptr;
  auto open = openDevice(context);
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.error().text().find("scope \"device\""), std::string::npos);
}

}  // namespace
}  // namespace muster
