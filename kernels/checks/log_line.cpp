// SPDX-License-Identifier: Apache-2.0
// What one line of the kernel's log says about the hardware.
#include "kernels/checks/log_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>

#include "kernels/checks/xid.h"

namespace muster {
namespace {

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

bool hasAny(std::string_view line, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [line](std::string_view part) { return has(line, part); });
}

/// "0000:4e:00" at the beginning of `text`, which may say "PCI:" before it; else empty.
std::string addressAt(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx";
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  if (text.size() < kForm.size()) return "";
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f') ||
                       (text[i] >= 'A' && text[i] <= 'F');
    if (kForm[i] == 'x' ? !digit : text[i] != ':') return "";
  }
  std::string address(text.substr(0, kForm.size()));
  std::transform(address.begin(), address.end(), address.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return address;
}

/// Reads "ADDRESS): NUMBER" after `mark`; what follows is put into `rest`. False when the line is another
/// one.
bool readNumbered(std::string_view line, std::string_view mark, LogLine& out, std::string_view& rest) {
  const size_t at = line.find(mark);
  if (at == std::string_view::npos) return false;
  line.remove_prefix(at + mark.size());
  out.address = addressAt(line);
  const size_t number = line.find("): ");
  if (out.address.empty() || number == std::string_view::npos) return false;
  const char* begin = line.data() + number + 3;
  const char* end = line.data() + line.size();
  const auto [after, error] = std::from_chars(begin, end, out.code);
  if (error != std::errc{}) return false;
  rest = {after, static_cast<size_t>(end - after)};
  return true;
}

LogLine xidIn(std::string_view line) {
  LogLine found;
  std::string_view rest;
  if (!readNumbered(line, "NVRM: Xid (", found, rest)) return {};
  found.kind = LogKind::kXid;
  found.fatal = !has(rest, " Nonfatal ");
  return found;
}

/// Three lines tell of one SXid; the one with Fatal or Non-fatal is the event, the others are its details.
LogLine sxidIn(std::string_view line) {
  LogLine found;
  std::string_view rest;
  if (!readNumbered(line, " SXid (", found, rest)) return {};
  const bool fatal = rest.starts_with(", Fatal");
  if (!fatal && !rest.starts_with(", Non-fatal")) return {};
  found.kind = LogKind::kSxid;
  found.fatal = fatal;
  return found;
}

LogLine fallenOffIn(std::string_view line) {
  if (!has(line, "NVRM: ") || !has(line, "fallen off the bus")) return {};
  LogLine found{LogKind::kFallenOffBus, "", kXidFallenOffTheBus, true};
  for (const std::string_view mark : {"NVIDIA GPU ", "GPU at ", "GPU "})
    if (const size_t at = line.find(mark); at != std::string_view::npos && found.address.empty())
      found.address = addressAt(line.substr(at + mark.size()));
  return found;
}

bool isHcaError(std::string_view line) {
  if (!has(line, "mlx5_core ")) return false;
  if (has(line, "Port module event"))
    return hasAny(line, {"event[error]", "Cable error", "High Temperature"});
  return hasAny(line, {"Detected insufficient power on the PCIe slot", "available PCIe bandwidth, limited by",
                       "High temperature on sensors", "health compromised", "Fatal error", "internal error",
                       "handling bad device", "leak of a command resource"});
}

/// "CPU 3: Machine Check: 0 Bank 5: bea0000000000108": bit 61 of the bank's status says uncorrected.
/// Corrected errors and thermal events are logged in the same form.
bool isUncorrectedCheck(std::string_view line) {
  constexpr unsigned kUncorrected = 61;
  if (!has(line, "[Hardware Error]: CPU ")) return false;
  const size_t bank = line.find("Bank ");
  const size_t colon = line.find(": ", std::min(bank, line.size()));
  if (colon == std::string_view::npos) return true;
  uint64_t status = 0;
  const auto [after, error] = std::from_chars(line.data() + colon + 2, line.data() + line.size(), status, 16);
  return error != std::errc{} || (status >> kUncorrected & 1U) != 0;
}

bool isHardwareError(std::string_view line) {
  return isUncorrectedCheck(line) ||
         hasAny(line, {"[Hardware Error]: Uncorrected", "[Hardware Error]: System Fatal error",
                       "event severity: fatal", "event severity: recoverable",
                       "Memory failure: ", "Uncorrected hardware memory error",
                       "due to hardware memory corruption", "postRxDetLinkMask failed"}) ||
         (has(line, "EDAC ") && has(line, " UE ")) || (has(line, "AER: ") && has(line, "Uncorrect"));
}

}  // namespace

LogLine readLogLine(std::string_view line) {
  if (has(line, "NVRM: Xid (")) return xidIn(line);
  if (has(line, " SXid (")) return sxidIn(line);
  if (const LogLine fallen = fallenOffIn(line); fallen.kind != LogKind::kNone) return fallen;
  LogLine found;
  found.kind = isHcaError(line)        ? LogKind::kHcaError
               : isHardwareError(line) ? LogKind::kHardwareError
                                       : LogKind::kNone;
  return found;
}

std::string gpuInLogLine(std::string_view line) {
  constexpr std::string_view kMark = "NVRM: The NVIDIA GPU ";
  const size_t at = line.find(kMark);
  return at == std::string_view::npos ? "" : addressAt(line.substr(at + kMark.size()));
}

}  // namespace muster
