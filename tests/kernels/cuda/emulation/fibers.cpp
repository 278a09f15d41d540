// SPDX-License-Identifier: Apache-2.0
// Threads of a block as fibers.
#include "tests/kernels/cuda/emulation/fibers.h"

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace muster::emulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr unsigned kWarp = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFF;

/// A stack that runs code; the host's own is one too. Sanitizers are told of every change.
struct Fiber {
  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* fakeStack = nullptr;
  void* known = nullptr;  ///< to ThreadSanitizer
  jmp_buf place{};
  bool entered = false;
};

#if defined(__SANITIZE_ADDRESS__)
void change(Fiber& from, Fiber& to) {
  __sanitizer_start_switch_fiber(&from.fakeStack, to.bottom, to.bytes);
  swapcontext(&from.context, &to.context);
  __sanitizer_finish_switch_fiber(from.fakeStack, nullptr, nullptr);
}
#elif defined(__SANITIZE_THREAD__)
void change(Fiber& from, Fiber& to) {
  from.known = __tsan_get_current_fiber();
  if (to.known == nullptr) to.known = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(to.known, 0);
  swapcontext(&from.context, &to.context);
}
#else
/// A context is only entered the first time: changing it each time asks the kernel for the signal mask twice.
void change(Fiber& from, Fiber& to) {
  if (_setjmp(from.place) != 0) return;
  if (std::exchange(to.entered, true)) _longjmp(to.place, 1);
  setcontext(&to.context);
}
#endif

/// Threads that wait until as many as are left have come.
struct Barrier {
  unsigned members = 0;
  std::vector<unsigned> waiting;
};
struct Warp {
  Barrier barrier;
  std::array<std::array<uint32_t, kWarp>, 2> values{};  ///< of this shuffle and of the one before
};
struct BlockThread {
  Thread place;
  Fiber* fiber = nullptr;
  unsigned shuffles = 0;
};

/// Runs one block after the other. A fiber that ends its thread goes on with the next one, so that a kernel
/// without barriers runs on a single fiber.
class Scheduler {
 public:
  std::string run(dim3 grid, dim3 block, const std::function<void()>& kernel);
  [[nodiscard]] const Thread& current() const { return threads_[running_].place; }
  void syncBlock() { wait(block_); }
  uint32_t exchange(uint32_t lanes, uint32_t value, unsigned distance);

 private:
  static void enter();
  [[noreturn]] void work();
  void startBlock(dim3 grid, dim3 block, dim3 index, bool reversed);
  void runBlock();
  void startThread();
  void endThread();
  Fiber& idleFiber();
  void wait(Barrier& barrier);
  void release(Barrier& barrier);
  void toHost();
  void refuseShuffle(unsigned lanes);
  [[noreturn]] void giveUp();

  const std::function<void()>* kernel_ = nullptr;
  std::vector<BlockThread> threads_;
  std::vector<Warp> warps_;
  Barrier block_;
  std::deque<unsigned> ready_;
  unsigned next_ = 0, ended_ = 0, running_ = 0;
  bool reversed_ = false;
  std::string problem_;

  Fiber host_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* own_ = nullptr;  ///< whose stack runs; nullptr: the host's
};

Scheduler scheduler;

void Scheduler::enter() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.host_.bottom, &scheduler.host_.bytes);
#endif
  scheduler.work();
}

void Scheduler::work() {
  for (;;) {
    while (next_ < threads_.size() && problem_.empty()) {
      startThread();
      (*kernel_)();
      endThread();
    }
    idle_.push_back(own_);
    toHost();
  }
}

Fiber& Scheduler::idleFiber() {
  if (!idle_.empty()) {
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  auto made = std::make_unique<Fiber>();
  made->stack = std::make_unique<std::byte[]>(kStackBytes);
  made->bottom = made->stack.get();
  made->bytes = kStackBytes;
  getcontext(&made->context);
  made->context.uc_stack.ss_sp = made->stack.get();
  made->context.uc_stack.ss_size = kStackBytes;
  makecontext(&made->context, &Scheduler::enter, 0);
  fibers_.push_back(std::move(made));
  return *fibers_.back();
}

void Scheduler::startThread() {
  const unsigned count = static_cast<unsigned>(threads_.size());
  running_ = reversed_ ? count - 1 - next_ : next_;
  ++next_;
  threads_[running_].fiber = own_;
}

/// Barriers do not wait for a thread that has ended.
void Scheduler::endThread() {
  ++ended_;
  for (Barrier* barrier : {&block_, &warps_[running_ / kWarp].barrier}) {
    --barrier->members;
    if (barrier->members > 0 && barrier->waiting.size() == barrier->members) release(*barrier);
  }
}

void Scheduler::release(Barrier& barrier) {
  ready_.insert(ready_.end(), barrier.waiting.begin(), barrier.waiting.end());
  barrier.waiting.clear();
}

void Scheduler::wait(Barrier& barrier) {
  if (barrier.waiting.size() + 1 == barrier.members) return release(barrier);  // the last one goes on at once
  const unsigned self = running_;
  barrier.waiting.push_back(self);
  toHost();
  running_ = self;
}

void Scheduler::toHost() {
  Fiber& self = *own_;
  change(self, host_);
  own_ = &self;
}

void Scheduler::refuseShuffle(unsigned lanes) {
  problem_ = "a shuffle among " + std::to_string(lanes) + " lanes; expected all 32 of a warp";
}

/// The threads of this block stay where they are and are never resumed: nothing on their stacks may own
/// memory of the heap.
void Scheduler::giveUp() {
  toHost();
  std::abort();
}

uint32_t Scheduler::exchange(uint32_t lanes, uint32_t value, unsigned distance) {
  Warp& warp = warps_[running_ / kWarp];
  if (lanes != kAllLanes || warp.barrier.members != kWarp) {
    refuseShuffle(warp.barrier.members);
    giveUp();
  }
  auto& values = warp.values[threads_[running_].shuffles++ % 2];
  const unsigned lane = running_ % kWarp;
  values[lane] = value;
  wait(warp.barrier);
  return values[lane ^ distance];
}

void Scheduler::startBlock(dim3 grid, dim3 block, dim3 index, bool reversed) {
  threads_.assign(static_cast<size_t>(block.x) * block.y * block.z, {});
  const auto count = static_cast<unsigned>(threads_.size());
  for (unsigned i = 0; i < count; ++i)
    threads_[i].place = {{i % block.x, i / block.x % block.y, i / block.x / block.y}, index, block, grid};
  warps_.assign((count + kWarp - 1) / kWarp, {});
  for (unsigned i = 0; i < count; ++i) ++warps_[i / kWarp].barrier.members;
  block_ = {count, {}};
  ready_.clear();
  next_ = ended_ = 0;
  reversed_ = reversed;
}

void Scheduler::runBlock() {
  while (problem_.empty()) {
    if (!ready_.empty()) {
      running_ = ready_.front();
      ready_.pop_front();
      own_ = threads_[running_].fiber;
    } else if (next_ < threads_.size()) {
      own_ = &idleFiber();
    } else {
      break;
    }
    change(host_, *own_);
  }
  if (problem_.empty() && ended_ < threads_.size())
    problem_ = std::to_string(threads_.size() - ended_) + " of " + std::to_string(threads_.size()) +
               " threads of a block wait for others that never come";
}

std::string Scheduler::run(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  kernel_ = &kernel;
  host_.entered = true;  // it runs already
  problem_.clear();
  bool reversed = false;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x && problem_.empty(); ++x) {
        startBlock(grid, block, {x, y, z}, reversed);
        reversed = !reversed;
        runBlock();
      }
  if (!problem_.empty()) {  // the fibers that were given up
    idle_.clear();
    fibers_.clear();
  }
  return problem_;
}

}  // namespace

const Thread& currentThread() {
  return scheduler.current();
}
void syncBlock() {
  scheduler.syncBlock();
}
uint32_t exchange(uint32_t lanes, uint32_t value, unsigned distance) {
  return scheduler.exchange(lanes, value, distance);
}
std::string runGrid(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  return scheduler.run(grid, block, kernel);
}

}  // namespace muster::emulation
