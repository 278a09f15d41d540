// SPDX-License-Identifier: Apache-2.0
// What one line of the kernel's log says about the hardware.
#include "kernels/checks/log_line.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>

#include "kernels/checks/xid.h"
#include "runner/core/text.h"

namespace muster {
namespace {

/// The kernel prints a process' name as its user chose it, the name of a file in which it crashed too, and
/// begins some messages with the first. So what stands at the beginning of each form below is checked further
/// than a process' name (15 bytes) reaches: up to an address or a number that the driver puts there itself.
constexpr int kLongestProcessName = 15;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool hasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [text](std::string_view part) { return has(text, part); });
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

bool isHexDigit(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool isWordPart(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

/// The functions `skip…` remove what they name from the beginning of `text`; false where it does not stand
/// there.
bool skip(std::string_view& text, std::string_view part) {
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

/// One character at least.
bool skipAll(std::string_view& text, bool (*belongs)(char)) {
  const auto end = std::find_if_not(text.begin(), text.end(), belongs);
  const auto length = static_cast<size_t>(end - text.begin());
  text.remove_prefix(length);
  return length > 0;
}

/// "[   12.345678]" or "[ T2210]": up to its end.
bool skipBrackets(std::string_view& text) {
  const size_t end = text.find(']');
  if (!text.starts_with('[') || end == std::string_view::npos) return false;
  text.remove_prefix(end + 1);
  return true;
}

/// "0000:17:00.0", of which some hosts' domains have more digits.
bool skipDevice(std::string_view& text) {
  return skipAll(text, isHexDigit) && skip(text, ":") && skipAll(text, isHexDigit) && skip(text, ":") &&
         skipAll(text, isHexDigit) && skip(text, ".") && skipAll(text, isHexDigit);
}

/// "0000:4e:00" at the beginning of `text`, which may say "PCI:" before it; else empty.
std::string addressAt(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx";
  skip(text, "PCI:");
  if (text.size() < kForm.size()) return "";
  for (size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'x' ? !isHexDigit(text[i]) : text[i] != ':') return "";
  return lowerCase(std::string(text.substr(0, kForm.size())));
}

/// A line's message: what follows level, time and caller, which the log puts before it, or a log file's time
/// and host; empty where another than the kernel wrote it (facility 1 or more in the level).
std::string_view messageOf(std::string_view line) {
  constexpr int kFirstOfOthers = 8;  // the level is facility * 8 + severity
  if (line.starts_with('<')) {
    int level = 0;
    const auto [after, error] = std::from_chars(line.data() + 1, line.data() + line.size(), level);
    if (error != std::errc{} || after == line.data() + line.size() || *after != '>') return "";
    if (level < 0 || level >= kFirstOfOthers) return "";
    line.remove_prefix(static_cast<size_t>(after + 1 - line.data()));
    if (!line.starts_with('[')) return line;
  }
  std::string_view text = line;
  const auto isTime = [](char c) { return isDigit(c) || c == '.' || c == ' '; };
  if (skip(text, "[") && skipAll(text, isTime) && skip(text, "]")) {
    skipBrackets(text);
    return skip(text, " ") ? text : "";
  }
  constexpr size_t kFileTime = 16;  // "Nov  3 04:11:52 "
  if (line.size() > kFileTime && line[kFileTime - 1] == ' ' && line[12] == ':' && line[9] == ':') {
    text = line.substr(kFileTime);
    if (skipAll(text, isWordPart) && skip(text, " kernel: ")) return text;
  }
  return line;
}

/// Reads "ADDRESS): NUMBER"; what follows stays in `text`. False when the line is another one.
bool skipNumbered(std::string_view& text, LogLine& out) {
  out.address = addressAt(text);
  const size_t number = text.find("): ");
  if (out.address.empty() || number == std::string_view::npos) return false;
  text.remove_prefix(number + 3);
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), out.code);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(after - text.data()));
  return true;
}

/// A name of a process may stand between the number and what the driver says.
LogLine xidIn(std::string_view text) {
  LogLine found;
  if (!skipNumbered(text, found)) return {};
  found.kind = LogKind::kXid;
  found.fatal = !has(text, " Nonfatal ") || has(text, " Fatal ");
  return found;
}

/// Three lines tell of one SXid; the one with Fatal or Non-fatal is the event, the others are its details.
LogLine sxidIn(std::string_view text) {
  LogLine found;
  if (!skipAll(text, isDigit) || !skip(text, ": SXid (") || !skipNumbered(text, found)) return {};
  const bool fatal = text.starts_with(", Fatal");
  if (!fatal && !text.starts_with(", Non-fatal")) return {};
  found.kind = LogKind::kSxid;
  found.fatal = fatal;
  return found;
}

/// `text` follows "NVRM: ".
LogLine fallenOffIn(std::string_view text) {
  LogLine found{LogKind::kFallenOffBus, "", kXidFallenOffTheBus, true};
  for (const std::string_view mark : {"The NVIDIA GPU ", "GPU at ", "GPU "})
    if (skip(text, mark)) {
      found.address = addressAt(text);
      return !found.address.empty() && has(text, "fallen off the bus") ? found : LogLine{};
    }
  return {};
}

bool isHcaError(std::string_view text) {
  if (!skip(text, "mlx5_core ") || !skipDevice(text)) return false;
  if (has(text, "Port module event"))
    return hasAny(text, {"event[error]", "Cable error", "High Temperature"});
  return hasAny(text, {"Detected insufficient power on the PCIe slot", "available PCIe bandwidth, limited by",
                       "High temperature on sensors", "health compromised", "Fatal error", "internal error",
                       "handling bad device", "leak of a command resource"});
}

/// "mlx5_core 0000:17:00.0 ens1f0np0: Link down", and no more.
LogLine hcaLinkIn(std::string_view text) {
  if (!skip(text, "mlx5_core ") || !skipDevice(text) || !skip(text, " ")) return {};
  LogLine found;
  found.address = text.substr(0, text.find(':'));
  if (!skipAll(text, isWordPart) || (text != ": Link down" && text != ": Link up")) return {};
  found.kind = text == ": Link up" ? LogKind::kHcaLinkUp : LogKind::kHcaLinkDown;
  return found;
}

/// "pcieport 0000:17:00.0: AER: Uncorrected (Fatal) error received": any driver's device.
bool isPcieError(std::string_view text) {
  return skipAll(text, isWordPart) && skip(text, " ") && skipDevice(text) && skip(text, ": AER: ") &&
         has(text, "Uncorrect");
}

/// "CPU 3: Machine Check: 0 Bank 5: bea0000000000108": bit 61 of the bank's status says uncorrected.
/// Corrected errors and thermal events are logged in the same form.
bool isUncorrectedCheck(std::string_view text) {
  constexpr unsigned kUncorrected = 61;
  if (!text.starts_with("CPU ")) return false;
  const size_t bank = text.find("Bank ");
  const size_t colon = text.find(": ", std::min(bank, text.size()));
  if (colon == std::string_view::npos) return true;
  uint64_t status = 0;
  const auto [after, error] = std::from_chars(text.data() + colon + 2, text.data() + text.size(), status, 16);
  return error != std::errc{} || (status >> kUncorrected & 1U) != 0;
}

/// "mce: [Hardware Error]: ", "{1}[Hardware Error]: ", or without what stands before it, and the error.
bool isReportedError(std::string_view text) {
  if (skip(text, "{") && !(skipAll(text, isDigit) && skip(text, "}"))) return false;
  skip(text, "mce: ");
  if (text.starts_with("Uncorrected hardware memory error")) return true;
  if (!skip(text, "[Hardware Error]: ")) return false;
  if (isUncorrectedCheck(text)) return true;
  for (const std::string_view error :
       {"Uncorrected", "System Fatal error", "event severity: fatal", "event severity: recoverable"})
    if (text.starts_with(error)) return true;
  return false;
}

/// "MCE: Killing NAME:PID due to hardware memory corruption fault at 7f0012345000", and no more: the name
/// itself may hold anything.
bool isKilledForMemory(std::string_view text) {
  if (!skip(text, "MCE: Killing ")) return false;
  for (int length = 0; length <= kLongestProcessName && !text.empty(); ++length) {
    std::string_view rest = text;
    if (skip(rest, ":") && skipAll(rest, isDigit) &&
        skip(rest, " due to hardware memory corruption fault at ") && skipAll(rest, isHexDigit) &&
        rest.empty())
      return true;
    text.remove_prefix(std::min<size_t>(text.starts_with("\\x") ? 4 : 1, text.size()));  // as printed
  }
  return false;
}

/// "EDAC MC0: 1 UE memory read error on CPU_SrcID#0", of some drivers with their name before MC0, of some
/// without words before "on". A process' name reaches as far as "UE "; what the kernel says of a process has
/// a bracket, a colon or an equals sign before the next name.
bool isMemoryControllerError(std::string_view text) {
  if (!skip(text, "EDAC ")) return false;
  if (!text.starts_with("MC") && (!skipAll(text, isWordPart) || !skip(text, " "))) return false;
  if (!skip(text, "MC") || !skipAll(text, isDigit) || !skip(text, ": ") || !skipAll(text, isDigit) ||
      !skip(text, " UE "))
    return false;
  const auto isPlain = [](char c) { return isWordPart(c) || c == ' ' || c == ',' || c == '/'; };
  const std::string_view words =
      text.substr(0, std::find_if_not(text.begin(), text.end(), isPlain) - text.begin());
  return words.starts_with("on ") || has(words, " on ");
}

bool isHardwareError(std::string_view text) {
  return isReportedError(text) || isPcieError(text) || isMemoryControllerError(text) ||
         isKilledForMemory(text) || text.starts_with("Memory failure: 0x") ||
         (text.starts_with("NVRM: knvlinkDiscoverPostRxDetLinks") && has(text, "postRxDetLinkMask failed"));
}

}  // namespace

LogLine readLogLine(std::string_view line) {
  const std::string_view text = messageOf(line);
  if (std::string_view xid = text; skip(xid, "NVRM: Xid (")) return xidIn(xid);
  if (std::string_view sxid = text; skip(sxid, "nvidia-nvswitch")) return sxidIn(sxid);
  LogLine found;
  if (std::string_view other = text; skip(other, "NVRM: ")) found = fallenOffIn(other);
  if (found.kind == LogKind::kNone) found = hcaLinkIn(text);
  if (found.kind != LogKind::kNone) return found;
  found.kind = isHcaError(text)        ? LogKind::kHcaError
               : isHardwareError(text) ? LogKind::kHardwareError
                                       : LogKind::kNone;
  return found;
}

}  // namespace muster
