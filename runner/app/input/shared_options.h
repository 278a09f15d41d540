// SPDX-License-Identifier: Apache-2.0
// Options that several commands have, with one name and one help text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own
class App;
}

namespace muster {

void addSets(CLI::App* app, std::vector<std::string>& sets);
void addPluginFolders(CLI::App* app, std::vector<std::filesystem::path>& folders);
void addSkuFolders(CLI::App* app, std::vector<std::filesystem::path>& folders);
void addWaivers(CLI::App* app, std::filesystem::path& waivers);
/// Launchers may also pass it in the environment.
void addFleetId(CLI::App* app, std::string& id, const char* help);
void addNodeSkus(CLI::App* app, std::vector<std::string>& skus);
void addSameMachine(CLI::App* app, bool& sameMachine);
void addRejectOutliers(CLI::App* app, bool& reject);

}  // namespace muster
