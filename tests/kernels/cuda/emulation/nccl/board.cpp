// SPDX-License-Identifier: Apache-2.0
// See board.h.
#include "tests/kernels/cuda/emulation/nccl/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace muster::emulation {

struct Board::Shared {
  struct Place {
    std::atomic<int> size;
    std::atomic<bool> ready, left;
  };
  Place places[kMostRanks];
  Mailbox mailboxes[kMostRanks][kMostRanks];
};

namespace {

/// A lock on one byte of the file stands for a rank that is alive.
struct flock lockOf(int rank, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

std::string Board::create() {
  const char* folder = std::getenv("MUSTER_FAKE_NCCL_FOLDER");
  std::string path = std::string(folder == nullptr ? "" : folder) + "/nccl-XXXXXX";
  const int file = folder == nullptr ? -1 : mkstemp(path.data());
  if (file < 0) return "";
  const bool sized = ftruncate(file, sizeof(Shared)) == 0;  // zeros: nobody has come
  close(file);
  return sized ? path : "";
}

std::shared_ptr<Board> Board::join(const std::string& path, int rank, int ranks) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct flock lock = lockOf(rank, F_WRLCK);
  void* mapped = fcntl(file, F_OFD_SETLK, &lock) == 0
                     ? mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                     : MAP_FAILED;
  if (mapped == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  std::shared_ptr<Board> board(new Board(file, static_cast<Shared*>(mapped), rank));
  board->shared_->places[rank].size = ranks;
  return board;
}

Board::~Board() {
  munmap(shared_, sizeof(Shared));
  close(file_);
}

Mailbox& Board::mailbox(int from, int to) {
  return shared_->mailboxes[from][to];
}
void Board::beReady() {
  shared_->places[rank_].ready = true;
}
bool Board::ready(int rank) const {
  return shared_->places[rank].ready;
}
int Board::sizeSeenBy(int rank) const {
  return shared_->places[rank].size;
}
bool Board::gone(int rank) const {
  if (rank == rank_ || sizeSeenBy(rank) == 0 || left(rank)) return false;
  struct flock lock = lockOf(rank, F_WRLCK);
  return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK && !left(rank);
}
void Board::leave() {
  shared_->places[rank_].left = true;
}
void Board::vanish() {
  struct flock lock = lockOf(rank_, F_UNLCK);
  (void)fcntl(file_, F_OFD_SETLK, &lock);
}
bool Board::left(int rank) const {
  return shared_->places[rank].left;
}
bool Board::allLeft(int ranks) const {
  for (int rank = 0; rank < ranks; ++rank)
    if (!left(rank)) return false;
  return true;
}

}  // namespace muster::emulation
