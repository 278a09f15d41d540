// SPDX-License-Identifier: Apache-2.0
// A headless Chromium under test, driven over the pipe of its DevTools protocol: no port, no other tool.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runner/core/json.h"
#include "runner/system/files.h"
#include "tests/support/process.h"

namespace muster::testing {

/// What a page did since it was opened.
struct PageActivity {
  std::vector<std::string> requests;  ///< URLs, the page's own and data: left out
  std::vector<std::string> messages;  ///< console messages, log entries and uncaught exceptions
  std::vector<std::string> dialogs;   ///< texts of alert() and its like
};

/// One browser with one page. Failures of the browser itself throw: they are no outcome of a test.
class Browser {
 public:
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Loads a file and waits until it is loaded and quiet.
  void open(const std::filesystem::path& file);
  /// The value of a JavaScript expression in the page.
  Json evaluate(const std::string& expression);
  /// Sends a command to the page and returns its result.
  Json command(const std::string& method, const Json& params = Json::object());
  /// As a reader who has turned scripts off; holds for pages opened from now on.
  void disableScripts();
  /// Moves the mouse to a point of the viewport.
  void moveMouse(double x, double y);
  [[nodiscard]] PageActivity activity();

 private:
  void start();
  Json exchange(const std::string& method, const Json& params, const std::string& session);
  Json receive();
  void note(const Json& event);
  void settle();

  TempDir profile_;
  Fd toBrowser_;
  Fd fromBrowser_;
  std::string buffer_;
  pid_t pid_ = -1;
  int lastId_ = 0;
  std::string session_;
  std::string url_;
  bool loaded_ = false;
  bool scripts_ = true;
  PageActivity activity_;
};

}  // namespace muster::testing
