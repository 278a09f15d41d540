// SPDX-License-Identifier: Apache-2.0
// See fetch.h. libcurl is opened and not linked: it would bring two dozen libraries into a tree that rarely
// needs it.
#include "plugins/train/data/files/fetch.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "plugins/train/data/files/checksum.h"
#include "runner/core/text.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster::train {
namespace {

constexpr int kFetchTries = 5;      ///< a transfer that moves on is tried again so often
constexpr long kStallSeconds = 30;  ///< without a byte, then it is cut off

/// The functions of libcurl in use.
struct Curl {
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_getinfo) info = nullptr;
  decltype(&curl_easy_strerror) error = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
};

Error noCurl(const std::string& why) {
  return {ErrorCode::kNotFound,
          "downloads need libcurl: " + why +
              "; install it (apt-get install libcurl4), or fetch the files by hand and "
              "give data_dir",
          "libcurl.so.4"};
}

Result<Curl> openCurl() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return noCurl(dlerror());
  Curl curl;
  bool whole = true;
  const auto find = [&](auto& slot, const char* name) {
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(library, name));
    whole = whole && slot != nullptr;
  };
  find(curl.init, "curl_easy_init");
  find(curl.set, "curl_easy_setopt");
  find(curl.perform, "curl_easy_perform");
  find(curl.info, "curl_easy_getinfo");
  find(curl.error, "curl_easy_strerror");
  find(curl.cleanup, "curl_easy_cleanup");
  if (!whole) return noCurl("it lacks functions that Muster calls");
  return curl;
}

/// One transfer: where its bytes go, and what it may become.
struct Transfer {
  FILE* file = nullptr;
  uint64_t got = 0;  ///< bytes in the file
  uint64_t limit = 0;
  bool tooLong = false;
  const FetchProgress* progress = nullptr;
  bool stopped = false;
};

size_t takeBytes(char* data, size_t size, size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (transfer->got + bytes > transfer->limit) {
    transfer->tooLong = true;
    return 0;
  }
  const size_t written = fwrite(data, 1, bytes, transfer->file);
  transfer->got += written;
  return written;
}

int tellProgress(void* user, curl_off_t wanted, curl_off_t got, curl_off_t, curl_off_t) {
  auto* transfer = static_cast<Transfer*>(user);
  const uint64_t before = transfer->got - std::min<uint64_t>(transfer->got, static_cast<uint64_t>(got));
  transfer->stopped =
      !(*transfer->progress)(transfer->got, wanted > 0 ? before + static_cast<uint64_t>(wanted) : 0);
  return transfer->stopped ? 1 : 0;
}

/// How one try ended.
struct Ended {
  CURLcode code = CURLE_OK;
  long status = 0;  ///< of HTTP
};

/// Versions before 7.85 know protocols as bits only.
bool allowOnly(const Curl& curl, CURL* handle, const std::string& protocol) {
  constexpr auto kProtocols = static_cast<CURLoption>(181), kRedirections = static_cast<CURLoption>(182);
  const bool byName = curl.set(handle, CURLOPT_PROTOCOLS_STR, protocol.c_str()) == CURLE_OK &&
                      curl.set(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocol.c_str()) == CURLE_OK;
  const long bit = protocol == "https" ? CURLPROTO_HTTPS : CURLPROTO_HTTP;
  return byName ||
         (curl.set(handle, kProtocols, bit) == CURLE_OK && curl.set(handle, kRedirections, bit) == CURLE_OK);
}

Ended transferOnce(const Curl& curl, const RemoteFile& file, Transfer& transfer) {
  std::unique_ptr<CURL, decltype(curl.cleanup)> handle(curl.init(), curl.cleanup);
  if (handle == nullptr || !allowOnly(curl, handle.get(), file.protocol)) return {CURLE_FAILED_INIT, 0};
  curl.set(handle.get(), CURLOPT_URL, file.url.c_str());
  curl.set(handle.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl.set(handle.get(), CURLOPT_MAXREDIRS, 10L);
  curl.set(handle.get(), CURLOPT_FAILONERROR, 1L);
  curl.set(handle.get(), CURLOPT_NOSIGNAL, 1L);
  curl.set(handle.get(), CURLOPT_CONNECTTIMEOUT, kStallSeconds);
  curl.set(handle.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.set(handle.get(), CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl.set(handle.get(), CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.got));
  curl.set(handle.get(), CURLOPT_WRITEFUNCTION, takeBytes);
  curl.set(handle.get(), CURLOPT_WRITEDATA, &transfer);
  curl.set(handle.get(), CURLOPT_NOPROGRESS, 0L);
  curl.set(handle.get(), CURLOPT_XFERINFOFUNCTION, tellProgress);
  curl.set(handle.get(), CURLOPT_XFERINFODATA, &transfer);
  Ended ended;
  ended.code = curl.perform(handle.get());
  curl.info(handle.get(), CURLINFO_RESPONSE_CODE, &ended.status);
  return ended;
}

/// Whether another try may end better.
bool mayGoOn(const Ended& ended, const Transfer& transfer, uint64_t before) {
  if (transfer.stopped || transfer.tooLong) return false;
  const bool cutOff = ended.code == CURLE_PARTIAL_FILE || ended.code == CURLE_RECV_ERROR ||
                      ended.code == CURLE_OPERATION_TIMEDOUT || ended.code == CURLE_GOT_NOTHING;
  return cutOff && transfer.got > before;
}

Status checkEnd(const Curl& curl, const RemoteFile& file, const Ended& ended, const Transfer& transfer) {
  if (transfer.stopped) return Error{ErrorCode::kTimeout, "the download was cancelled", file.url};
  if (transfer.tooLong)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the answer is longer than the {} bytes that the file can have", file.limit),
                 file.url};
  // The server has no more than what lies here already: the checksum tells whether that is all.
  if (ended.code == CURLE_OK || ended.status == 416) return {};
  return Error{
      ErrorCode::kIo,
      fmt::format("the download ended after {} bytes: {}{}; check the network and a proxy (https_proxy), run "
                  "again to go on from there, or fetch it by hand",
                  transfer.got, curl.error(ended.code),
                  ended.status >= 400 ? fmt::format(" (HTTP {})", ended.status) : ""),
      file.url};
}

Status gather(const Curl& curl, const RemoteFile& file, const std::filesystem::path& part,
              const FetchProgress& progress) {
  constexpr mode_t kUnverified = 0600;  // whatever the server sent is for nobody else
  MUSTER_TRY(Fd own, openOwnFile(part, O_WRONLY | O_APPEND, kUnverified));
  const std::unique_ptr<FILE, int (*)(FILE*)> out(fdopen(own.get(), "ab"), fclose);
  if (out != nullptr) (void)own.release();
  if (out == nullptr) return Error{ErrorCode::kIo, "cannot be written: " + errnoText(errno), part.string()};
  Transfer transfer;
  transfer.file = out.get();
  transfer.got = std::filesystem::file_size(part);
  transfer.limit = file.limit;
  transfer.progress = &progress;
  Ended ended;
  for (int i = 0; i < kFetchTries; ++i) {
    const uint64_t before = transfer.got;
    ended = transferOnce(curl, file, transfer);
    if (!mayGoOn(ended, transfer, before)) break;
  }
  MUSTER_CHECK_OK(checkEnd(curl, file, ended, transfer));
  if (fflush(out.get()) != 0)
    return Error{ErrorCode::kIo, "cannot be written: " + errnoText(errno), part.string()};
  return {};
}

}  // namespace

Status fetchFile(const RemoteFile& file, const std::filesystem::path& path, const FetchProgress& progress) {
  if (!file.url.starts_with(std::string(file.protocol) + "://"))
    return Error{ErrorCode::kUsage, fmt::format("only {}:// is fetched", file.protocol),
                 printable(file.url, 200)};
  static const Result<Curl> curl = openCurl();
  if (!curl.ok()) return curl.error();
  std::filesystem::path part = path;
  part += ".part";
  MUSTER_CHECK_OK(gather(*curl, file, part, progress));
  MUSTER_TRY(const std::string sha256, sha256OfFile(part));
  std::error_code error;
  if (sha256 != file.sha256) {
    const auto bytes = std::filesystem::file_size(part, error);
    std::filesystem::remove(part, error);
    return Error{
        ErrorCode::kCorrupt,
        fmt::format(
            "SHA-256 of the {} bytes is {}, expected {}; they were removed, run again to fetch them again",
            bytes, sha256, file.sha256),
        file.url};
  }
  using std::filesystem::perms;
  std::filesystem::permissions(
      part, perms::owner_write | perms::owner_read | perms::group_read | perms::others_read, error);
  if (!error) std::filesystem::rename(part, path, error);
  if (error) return Error{ErrorCode::kIo, "cannot be put in place: " + error.message(), path.string()};
  return {};
}

}  // namespace muster::train
