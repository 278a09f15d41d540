// SPDX-License-Identifier: Apache-2.0
// Fibers by ucontext, and the queue of events in virtual time.
#include "tests/bench/protocol/fibers.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <new>
#include <utility>

namespace muster::bench {
namespace {

constexpr size_t kStack = size_t{256} << 10;  // only what is touched takes memory
constexpr size_t kSlab = 1024;                // stacks in one mapping

}  // namespace

struct Fibers::Fiber {
  ucontext_t context{};
  char* stack = nullptr;
  int owner = 0;
  uint64_t ticket = 0;   ///< of its current wait
  bool waiting = false;  ///< and that one is not over
  bool done = false;
  std::function<void()> body;
};

double threadSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

Fibers::Fibers(int owners, int metered)
    : alive_(static_cast<size_t>(owners), true), meteredOwner_(metered), slabUsed_(kSlab) {}

Fibers::~Fibers() {
  for (char* slab : slabs_) munmap(slab, kSlab * kStack);
}

char* Fibers::stack() {
  if (slabUsed_ == kSlab) {
    void* memory = mmap(nullptr, kSlab * kStack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    slabs_.push_back(static_cast<char*>(memory));
    slabUsed_ = 0;
  }
  return slabs_.back() + kStack * slabUsed_++;
}

void Fibers::at(double when, int owner, std::function<void()> what) {
  events_.push({std::max(when, now_), ++order_, owner, std::move(what)});
}

/// makecontext passes ints only.
void Fibers::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fibers*>(uintptr_t{high} << 32 | low);
  while (true) {
    Fiber& fiber = *self->current_;
    std::exchange(fiber.body, nullptr)();
    fiber.done = true;
    swapcontext(&fiber.context, &self->loop_);  // comes back with the next body
  }
}

Fibers::Fiber& Fibers::fresh() {
  Fiber& fiber = fibers_.emplace_back();
  fiber.stack = stack();
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = kStack;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  return fiber;
}

void Fibers::spawn(int owner, std::function<void()> body) {
  if (free_.empty()) free_.push_back(&fresh());
  Fiber& fiber = *free_.back();
  free_.pop_back();
  fiber.owner = owner;
  fiber.body = std::move(body);
  fiber.waiting = true;
  fiber.done = false;
  wake({&fiber, ++fiber.ticket});
}

void Fibers::resume(Fiber& fiber, uint64_t ticket) {
  if (!fiber.waiting || fiber.ticket != ticket) return;
  fiber.waiting = false;
  current_ = &fiber;
  const bool metered = fiber.owner == meteredOwner_;
  const double begin = metered ? threadSeconds() : 0;
  swapcontext(&loop_, &fiber.context);
  if (metered) metered_ += threadSeconds() - begin;
  current_ = nullptr;
  if (fiber.done) free_.push_back(&fiber);
}

Fibers::Waker Fibers::waker() {
  return {current_, current_->ticket + 1};
}

void Fibers::sleep(double seconds) {
  Fiber& fiber = *current_;
  const Waker wait{&fiber, ++fiber.ticket};
  fiber.waiting = true;
  if (seconds < kForever) after(seconds, fiber.owner, [this, wait] { resume(*wait.fiber, wait.ticket); });
  swapcontext(&fiber.context, &loop_);
}

void Fibers::wake(const Waker& waker) {
  after(0, waker.fiber->owner, [this, waker] { resume(*waker.fiber, waker.ticket); });
}

void Fibers::run(const std::function<bool()>& done) {
  while (!events_.empty() && !done()) {
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.at;
    if (alive_[static_cast<size_t>(event.owner)]) event.what();
  }
}

void FiberTasks::join() {
  while (running_ > 0) {
    joiner_ = fibers_.waker();
    fibers_.sleep(kForever);
  }
}

void FiberTasks::start(std::function<void()> body) {
  ++running_;
  fibers_.spawn(owner_, [this, body = std::move(body)] {
    body();
    if (--running_ == 0 && joiner_.fiber != nullptr) fibers_.wake(joiner_);
  });
}

void FiberTasks::wait(std::unique_lock<std::mutex>& lock, double seconds) {
  const Fibers::Waker mine = fibers_.waker();
  waiting_.push_back(mine);
  lock.unlock();
  fibers_.sleep(seconds);
  lock.lock();
  std::erase_if(waiting_, [&](const Fibers::Waker& other) { return other.fiber == mine.fiber; });
}

void FiberTasks::notify() {
  for (const Fibers::Waker& waker : std::exchange(waiting_, {})) fibers_.wake(waker);
  onNotify_();
}

}  // namespace muster::bench
