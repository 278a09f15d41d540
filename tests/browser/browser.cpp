// SPDX-License-Identifier: Apache-2.0
// See browser.h.
#include "tests/browser/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace muster::testing {
namespace {

constexpr int kAnswerTimeoutMs = 240000;

/// Chromium reads commands from descriptor 3 and answers on 4.
[[noreturn]] void becomeBrowser(int commands, int answers, const std::string& profile) {
  setpgid(0, 0);
  // Away from 3 and 4 first: either may be one of them.
  const int in = fcntl(commands, F_DUPFD, 10);
  const int out = fcntl(answers, F_DUPFD, 10);
  dup2(in, 3);
  dup2(out, 4);
  close(in);
  close(out);
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) dup2(null, fd);
  // It puts folders beside its profile too, and leaves them there when it is killed.
  for (const char* place : {"TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}) setenv(place, profile.c_str(), 1);
  const std::string data = "--user-data-dir=" + profile + "/profile";
  execlp("chromium", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--remote-debugging-pipe", "--window-size=1280,900", data.c_str(),
         "about:blank", nullptr);
  _exit(127);
}

}  // namespace

Browser::Browser() {
  start();
  const Json target = exchange("Target.createTarget", {{"url", "about:blank"}}, "");
  const Json attached =
      exchange("Target.attachToTarget", {{"targetId", target["targetId"]}, {"flatten", true}}, "");
  session_ = attached["sessionId"];
  for (const char* domain : {"Page.enable", "Network.enable", "Runtime.enable", "Log.enable"})
    command(domain);
}

Browser::~Browser() {
  // The whole group: Chromium leaves helpers behind when it is killed alone.
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Browser::start() {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
  pid_ = fork();
  if (pid_ == 0) becomeBrowser(in[0], out[1], profile_.path().string());
  setpgid(pid_, pid_);
  close(in[0]);
  close(out[1]);
  toBrowser_ = Fd(in[1]);
  fromBrowser_ = Fd(out[0]);
  signal(SIGPIPE, SIG_IGN);
}

Json Browser::receive() {
  size_t end = buffer_.find('\0');
  while (end == std::string::npos) {
    pollfd wait{fromBrowser_.get(), POLLIN, 0};
    char chunk[65536];
    const ssize_t n =
        poll(&wait, 1, kAnswerTimeoutMs) == 1 ? read(fromBrowser_.get(), chunk, sizeof chunk) : -1;
    if (n <= 0)
      throw std::runtime_error("chromium ended or does not answer; is Debian's package chromium installed?");
    buffer_.append(chunk, static_cast<size_t>(n));
    end = buffer_.find('\0');
  }
  Json message = Json::parse(buffer_.substr(0, end));
  buffer_.erase(0, end + 1);
  return message;
}

Json Browser::exchange(const std::string& method, const Json& params, const std::string& session) {
  Json request = {{"id", ++lastId_}, {"method", method}, {"params", params}};
  if (!session.empty()) request["sessionId"] = session;
  const std::string text = request.dump();
  // The terminating NUL is part of the message.
  if (write(toBrowser_.get(), text.c_str(), text.size() + 1) != static_cast<ssize_t>(text.size() + 1))
    throw std::runtime_error("chromium does not read its commands; is Debian's package chromium installed?");
  while (true) {
    const Json message = receive();
    if (!message.contains("id")) {
      note(message);
    } else if (message["id"] == lastId_) {
      if (message.contains("error")) throw std::runtime_error(method + ": " + message["error"].dump());
      return message["result"];
    }
  }
}

void Browser::note(const Json& event) {
  const std::string method = event.value("method", "");
  const Json& params = event.contains("params") ? event["params"] : event;
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Network.requestWillBeSent") {
    const std::string url = params["request"]["url"];
    if (url != url_ && url.rfind("data:", 0) != 0) activity_.requests.push_back(url);
  }
  if (method == "Network.webSocketCreated") activity_.requests.push_back(params["url"]);
  if (method == "Runtime.consoleAPICalled" || method == "Runtime.exceptionThrown" ||
      method == "Log.entryAdded")
    activity_.messages.push_back(params.dump());
  if (method == "Page.javascriptDialogOpening") {
    activity_.dialogs.push_back(params["message"]);
    // Unanswered, it would stop the page for ever.
    const Json answer = {{"id", ++lastId_},
                         {"method", "Page.handleJavaScriptDialog"},
                         {"params", {{"accept", true}}},
                         {"sessionId", session_}};
    const std::string text = answer.dump();
    if (write(toBrowser_.get(), text.c_str(), text.size() + 1) < 0)
      throw std::runtime_error("chromium is gone");
  }
}

Json Browser::command(const std::string& method, const Json& params) {
  return exchange(method, params, session_);
}

void Browser::open(const std::filesystem::path& file) {
  activity_ = {};
  loaded_ = false;
  url_ = "file://" + file.string();
  command("Page.navigate", {{"url", url_}});
  while (!loaded_) note(receive());
  settle();
}

void Browser::disableScripts() {
  command("Emulation.setScriptExecutionDisabled", {{"value", true}});
  scripts_ = false;
}

/// Two frames and a turn of the event loop later, whatever the page starts on its own has started.
void Browser::settle() {
  if (!scripts_) return;  // nothing could start, and no timer would come
  command("Runtime.evaluate", {{"expression",
                                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => "
                                "setTimeout(done, 50))))"},
                               {"awaitPromise", true}});
}

Json Browser::evaluate(const std::string& expression) {
  const Json result = command("Runtime.evaluate",
                              {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
  if (result.contains("exceptionDetails"))
    throw std::runtime_error(expression + ": " + result["exceptionDetails"].dump());
  return result["result"].contains("value") ? result["result"]["value"] : Json();
}

void Browser::moveMouse(double x, double y) {
  command("Input.dispatchMouseEvent", {{"type", "mouseMoved"}, {"x", x}, {"y", y}});
}

PageActivity Browser::activity() {
  command("Runtime.evaluate", {{"expression", "0"}});  // events that came before this answer have been read
  return activity_;
}

}  // namespace muster::testing
