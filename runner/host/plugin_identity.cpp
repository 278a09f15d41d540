// SPDX-License-Identifier: Apache-2.0
// Reads the identity of a plugin from its ELF file and checks it.
#include "runner/host/plugin_identity.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "runner/core/text.h"
#include "runner/host/abi_version.h"
#include "runner/host/elf_file.h"
#include "runner/system/files.h"
#include "runner/system/trust.h"

namespace muster {
namespace {

/// The text of a fixed-size field, which must hold a zero byte.
Result<std::string> fieldText(const char* field, size_t size, const char* what, const std::string& path) {
  const size_t length = strnlen(field, size);
  if (length == size)
    return Error{ErrorCode::kProtocol,
                 fmt::format("its {} has no end (no zero byte in {} bytes)", what, size), path};
  return std::string(field, length);
}

}  // namespace

Result<PluginIdentity> checkPluginInfo(const muster_plugin_info& info, const std::string& path) {
  if (info.magic != MUSTER_PLUGIN_MAGIC)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("its plugin information has magic {:#018x}, expected {:#018x}: not a Muster plugin",
                    info.magic, MUSTER_PLUGIN_MAGIC),
        path};
  if (info.abi_major != hostAbiMajor())
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("was built for plugin ABI {}.{}, this Muster speaks {}.x; rebuild the plugin against its "
                    "muster_plugin.h",
                    info.abi_major, info.abi_minor, hostAbiMajor()),
        path};
  if (info.abi_minor > hostAbiMinor())
    return Error{ErrorCode::kUnsupported,
                 fmt::format("needs plugin ABI {}.{}, this Muster has {}.{}; use a newer Muster",
                             info.abi_major, info.abi_minor, hostAbiMajor(), hostAbiMinor()),
                 path};
  if (info.struct_size != sizeof info)
    return Error{
        ErrorCode::kProtocol,
        fmt::format("its plugin information has struct_size {}, expected {}", info.struct_size, sizeof info),
        path};
  PluginIdentity identity{path, "", "", info.abi_minor, info.flags};
  MUSTER_TRY(identity.name, fieldText(info.name, sizeof info.name, "name", path));
  MUSTER_TRY(identity.version, fieldText(info.version, sizeof info.version, "version", path));
  if (!isPlainName(identity.name))
    return Error{ErrorCode::kProtocol,
                 fmt::format("its name is \"{}\", expected letters, digits, '-', '_' and '.'",
                             printable(identity.name)),
                 path};
  identity.version = validUtf8(identity.version);
  return identity;
}

Result<PluginIdentity> identifyPlugin(const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path real = std::filesystem::canonical(path, failure);
  if (failure)
    return Error{failure == std::errc::no_such_file_or_directory ? ErrorCode::kNotFound : ErrorCode::kIo,
                 "cannot find the plugin: " + failure.message(), path};
  // O_NONBLOCK: a pipe in the place of a library must not make us wait for its writer.
  const Fd file(open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return Error{ErrorCode::kIo, "cannot open the plugin: " + errnoText(errno), real};
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return Error{ErrorCode::kUsage, "is not a regular file", real};
  if (auto trusted = trustedPath(real, "plugin"); !trusted.ok()) return std::move(trusted).error();
  muster_plugin_info info;
  MUSTER_TRY(const std::string bytes, readElfSymbol(file.get(), real, "muster_plugin", sizeof info));
  std::memcpy(&info, bytes.data(), sizeof info);
  return checkPluginInfo(info, real);
}

}  // namespace muster
