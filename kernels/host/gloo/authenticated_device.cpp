// SPDX-License-Identifier: Apache-2.0
// Extends Gloo's pairs by the proof, as its own TLS transport does by a handshake.
#include "kernels/host/gloo/authenticated_device.h"

#include <gloo/transport/tcp/context.h>
#include <gloo/transport/tcp/pair.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include "runner/system/secret.h"

namespace muster::host {
namespace {

namespace tcp = gloo::transport::tcp;

/// Other in each direction, so that nobody can send back what he was sent.
std::string proofOf(const std::string& secret, int from, int to) {
  return hexText(hmacSha256(secret, "from " + std::to_string(from) + " to " + std::to_string(to)));
}

class ProvenPair : public tcp::Pair {
 public:
  ProvenPair(tcp::Context* context, tcp::Device* device, int rank, std::chrono::milliseconds timeout,
             std::string own, std::string expected)
      : Pair(context, device, rank, timeout), own_(std::move(own)), expected_(std::move(expected)) {}

 protected:
  void changeState(state next) noexcept override {
    Pair::changeState(next);
    if (next != CONNECTED) return;
    // The connection is new: so few bytes always fit.
    const ssize_t sent = ::send(fd_, own_.data(), own_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    told_ = sent == static_cast<ssize_t>(own_.size());
  }

  void handleReadWrite(int events) override {
    if (!proven_) readProof();  // a connection that was lost has nothing to read, and says so
    if (!proven_) return;
    // A header that no peer writes by itself throws on Gloo's own thread, which would end this process.
    try {
      Pair::handleReadWrite(events);
    } catch (const std::exception& error) {
      if (ex_ == nullptr)
        signalException("rank " + std::to_string(rank_) + " sent what is no message: " + error.what());
    }
  }

  void waitUntilConnected(std::unique_lock<std::mutex>& lock, bool useTimeout) override {
    const auto isProven = [this] {
      throwIfException();
      return state_ >= CONNECTED && proven_;
    };
    waitUntil(isProven, lock, useTimeout);
  }

 private:
  void readProof() {
    std::array<char, 128> bytes{};
    const ssize_t got = ::recv(fd_, bytes.data(), expected_.size() - received_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) received_.append(bytes.data(), static_cast<size_t>(got));
    const bool all = received_.size() == expected_.size();
    if (got > 0 && !all) return;
    if (!told_ || received_ != expected_)
      return signalException("whoever connected in the place of rank " + std::to_string(rank_) +
                             " did not prove that it belongs to the group");
    proven_ = true;
    cv_.notify_all();
  }

  const std::string own_, expected_;
  std::string received_;
  bool told_ = false;
  bool proven_ = false;
};

class ProvenContext : public tcp::Context {
 public:
  ProvenContext(std::shared_ptr<tcp::Device> device, int rank, int size, std::string secret)
      : Context(std::move(device), rank, size), secret_(std::move(secret)) {}

  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    pairs_[static_cast<size_t>(peer)] = std::make_unique<ProvenPair>(
        this, device_.get(), peer, getTimeout(), proofOf(secret_, rank, peer), proofOf(secret_, peer, rank));
    return pairs_[static_cast<size_t>(peer)];
  }

 private:
  const std::string secret_;
};

class ProvenDevice : public tcp::Device {
 public:
  ProvenDevice(const tcp::attr& attributes, std::string secret)
      : Device(tcp::CreateDeviceAttr(attributes)), secret_(std::move(secret)) {}

  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<ProvenContext>(shared_from_this(), rank, size, secret_);
  }

 private:
  const std::string secret_;
};

}  // namespace

std::shared_ptr<gloo::transport::Device> authenticatedDevice(const tcp::attr& attributes,
                                                             std::string secret) {
  return std::make_shared<ProvenDevice>(attributes, std::move(secret));
}

}  // namespace muster::host
