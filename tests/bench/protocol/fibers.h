// SPDX-License-Identifier: Apache-2.0
// Virtual time: many fibers on one thread, which wait for events and for each other.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "runner/core/clock.h"
#include "runner/system/tasks.h"

namespace muster::bench {

constexpr double kForever = std::numeric_limits<double>::infinity();

/// CPU seconds of this thread.
double threadSeconds();

/// Runs what happens in the order of virtual time. Each fiber and event belongs to an owner; an owner that is
/// killed runs nothing any more. What one owner's fibers took of the real CPU is added up.
class Fibers : public Clock {
 public:
  struct Fiber;
  /// One wait of one fiber.
  struct Waker {
    Fiber* fiber = nullptr;
    uint64_t ticket = 0;
  };

  /// Of `metered` the CPU time is measured.
  Fibers(int owners, int metered);
  ~Fibers() override;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  [[nodiscard]] double now() const override { return now_; }
  [[nodiscard]] double wallUnix() const override { return now_; }

  void at(double when, int owner, std::function<void()> what);
  void after(double seconds, int owner, std::function<void()> what) {
    at(now_ + seconds, owner, std::move(what));
  }
  void spawn(int owner, std::function<void()> body);
  void kill(int owner) { alive_[static_cast<size_t>(owner)] = false; }
  [[nodiscard]] bool alive(int owner) const { return alive_[static_cast<size_t>(owner)]; }
  [[nodiscard]] double meteredSeconds() const { return metered_; }

  // Of the fiber that runs:
  Waker waker();
  /// Until wake() or for `seconds`.
  void sleep(double seconds);
  void wake(const Waker& waker);

  /// Until nothing is left to happen, or `done` says so.
  void run(const std::function<bool()>& done);

 private:
  struct Event {
    double at = 0;
    uint64_t order = 0;
    int owner = 0;
    std::function<void()> what;
    bool operator<(const Event& other) const { return at != other.at ? at > other.at : order > other.order; }
  };
  static void enter(unsigned high, unsigned low);
  void resume(Fiber& fiber, uint64_t ticket);
  char* stack();
  Fiber& fresh();

  double now_ = 0;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<bool> alive_;
  int meteredOwner_;
  double metered_ = 0;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> free_;
  std::vector<char*> slabs_;
  size_t slabUsed_;
  ucontext_t loop_{};
  Fiber* current_ = nullptr;
};

/// The tasks of one object, as fibers. `onNotify` is called with each notify().
class FiberTasks : public Tasks {
 public:
  FiberTasks(Fibers& fibers, int owner, std::function<void()> onNotify)
      : fibers_(fibers), owner_(owner), onNotify_(std::move(onNotify)) {}
  void start(std::function<void()> body) override;
  void wait(std::unique_lock<std::mutex>& lock, double seconds) override;
  void notify() override;
  void join() override;

 private:
  Fibers& fibers_;
  int owner_;
  std::function<void()> onNotify_;
  int running_ = 0;
  Fibers::Waker joiner_;
  std::vector<Fibers::Waker> waiting_;
};

}  // namespace muster::bench
