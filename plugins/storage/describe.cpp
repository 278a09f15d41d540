// SPDX-License-Identifier: Apache-2.0
// What the storage plugin offers. The texts below are JSON as plugins/abi/README.md describes it, without the
// parameters.
#include "plugins/storage/params.h"
#include "plugins/storage/tests.h"

namespace muster::storage {
namespace {

constexpr const char* kFioTest = R"json({
  "name": "fio",
  "summary": "Rate, operations and latency of one access pattern on a new file by fio, and whether the file holds what was written",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node"], "ranks": 1,
  "metrics": [
    {"name": "bandwidth", "unit": "B/s", "direction": "higher", "labels": ["pattern", "io"], "informational": true,
     "summary": "bytes moved per second of the measurement",
     "remedy": "Compare model, firmware and PCIe link of the drives (nvme list, lspci -vv: LnkSta), their temperature and wear (nvme smart-log), and the mount options; on a shared file system also its network"},
    {"name": "operations", "unit": "count/s", "direction": "higher", "labels": ["pattern", "io"], "informational": true,
     "summary": "operations per second (IOPS)",
     "remedy": "Compare model, firmware and PCIe link of the drives (nvme list, lspci -vv: LnkSta), their temperature and wear (nvme smart-log), and the mount options; on a shared file system also its network"},
    {"name": "latency_p50", "unit": "s", "direction": "lower", "labels": ["pattern", "io"], "informational": true,
     "summary": "median completion latency"},
    {"name": "latency_p99", "unit": "s", "direction": "lower", "labels": ["pattern", "io"], "informational": true,
     "summary": "99th percentile of completion latency",
     "remedy": "Look for other load on the drive or file system, and for errors and throttling of the drive (nvme smart-log, dmesg)"},
    {"name": "latency_p999", "unit": "s", "direction": "lower", "labels": ["pattern", "io"], "informational": true,
     "summary": "99.9th percentile of completion latency"},
    {"name": "verify_errors", "unit": "count", "direction": "lower", "labels": ["pattern"],
     "summary": "blocks of the file whose checksum was wrong or that could not be read, after the measurement",
     "standing": {"max": 0, "source": "storage returns what was written",
                  "remedy": "Data was lost or changed: take the drive or file system out of service; see dmesg and nvme smart-log (media_errors)"}},
    {"name": "first_fault", "unit": "text", "labels": ["pattern"], "informational": true, "optional": true,
     "summary": "what fio says of the first wrong block"},
    {"name": "engine", "unit": "text", "informational": true, "summary": "version and path of fio"}
  ]
})json";

constexpr const char* kLoadingTest = R"json({
  "name": "loading",
  "summary": "Reads many small files in shuffled order by several threads, as training loads its data; every byte is compared",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["node"], "ranks": 1,
  "metrics": [
    {"name": "file_rate", "unit": "count/s", "direction": "higher", "informational": true,
     "summary": "files opened, read and closed per second by all threads",
     "remedy": "Compare mount options, the drives and the load on the file system's metadata server with the other nodes"},
    {"name": "file_bandwidth", "unit": "B/s", "direction": "higher", "informational": true, "summary": "bytes of these files per second",
     "remedy": "Compare mount options, the drives and the load on the file system's metadata server with the other nodes"},
    {"name": "wrong_files", "unit": "count", "direction": "lower", "summary": "files with other contents or another size than were written",
     "standing": {"max": 0, "source": "storage returns what was written",
                  "remedy": "Data was lost or changed: take the drive or file system out of service; see dmesg and nvme smart-log (media_errors)"}},
    {"name": "cached_share", "unit": "ratio", "direction": "lower",
     "summary": "share of the files' pages that this host's page cache still held before they were read",
     "standing": {"max": 0.01, "severity": "error", "source": "a file that is read from memory does not measure storage",
                  "remedy": "The file system keeps its files in memory (tmpfs), or another process uses them: choose another directory"}},
    {"name": "cache", "unit": "text", "informational": true, "summary": "how the page cache was emptied"}
  ]
})json";

constexpr const char* kSharedTest = R"json({
  "name": "shared",
  "summary": "Whether all nodes see one and the same directory: each node's file in time, with its contents and as a whole while it is replaced, and locks that exclude other nodes",
  "backends": ["host", "sim", "cuda"],
  "scopes": ["cluster"], "ranks": 1, "group": true,
  "metrics": [
    {"name": "faulty_node", "unit": "bool", "direction": "lower",
     "summary": "whether this node explains that some nodes do not see the same files",
     "standing": {"max": 0, "source": "POSIX: what one process has written, others read (close-to-open on NFS), renaming is atomic, and a lock has one owner",
                  "remedy": "Compare the mount of the directory on the nodes that node_fault names (findmnt -T DIRECTORY): server, export, options such as nolock, local_lock and actimeo"}},
    {"name": "node_fault", "unit": "text", "informational": true, "optional": true,
     "summary": "the nodes that are at fault, and what is wrong, on all nodes"},
    {"name": "visible_time", "unit": "s", "direction": "lower", "informational": true, "optional": true,
     "summary": "time until this node saw the newest version of every other node's file"}
  ]
})json";

/// Metrics of all.
constexpr const char* kMountMetrics = R"json([
  {"name": "mount_source", "unit": "text", "informational": true, "optional": true, "summary": "what is mounted where the directory is: a device, or server and export"},
  {"name": "file_system", "unit": "text", "informational": true, "optional": true, "summary": "its type"},
  {"name": "mount_options", "unit": "text", "informational": true, "optional": true, "summary": "options of the mount and of the file system"}
])json";

std::string complete(const char* text) {
  Json test = Json::parse(text);
  for (const Json& metric : Json::parse(kMountMetrics)) test["metrics"].push_back(metric);
  return dumpJson(test);
}

}  // namespace

std::string describe() {
  return sdk::describe({{complete(kFioTest), sdk::describeParams<FioParams>()},
                        {complete(kLoadingTest), sdk::describeParams<LoadingParams>()},
                        {complete(kSharedTest), sdk::describeParams<SharedParams>()}});
}

}  // namespace muster::storage
