// SPDX-License-Identifier: Apache-2.0
// Tasks as threads of this process.
#include "runner/system/tasks.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <thread>
#include <utility>
#include <vector>

namespace muster {
namespace {

class Threads : public Tasks {
 public:
  void start(std::function<void()> body) override { threads_.emplace_back(std::move(body)); }
  void wait(std::unique_lock<std::mutex>& lock, double seconds) override {
    if (std::isinf(seconds))
      news_.wait(lock);
    else
      news_.wait_for(lock, std::chrono::duration<double>(seconds));
  }
  void notify() override { news_.notify_all(); }
  void join() override {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::condition_variable news_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Tasks> makeThreads() {
  return std::make_unique<Threads>();
}

}  // namespace muster
