// SPDX-License-Identifier: Apache-2.0
// Validates UTF-8 and guesses other encodings.
#include "runner/core/encoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "runner/core/text.h"

namespace muster {
namespace {

constexpr size_t kLooked = 4096;  ///< bytes of a file that its encoding is guessed from

struct Mark {
  std::string_view bytes;
  const char* encoding;
};
/// UTF-32 first: its mark begins with that of UTF-16.
constexpr Mark kMarks[] = {{{"\xFF\xFE\0\0", 4}, "UTF-32"},
                           {{"\0\0\xFE\xFF", 4}, "UTF-32"},
                           {{"\xFF\xFE", 2}, "UTF-16"},
                           {{"\xFE\xFF", 2}, "UTF-16"}};

/// Whether the zero bytes of `text` stand exactly where `width` bytes a character put them for plain ASCII.
bool looksWide(std::string_view text, size_t width, size_t letterAt) {
  if (text.size() < 2 * width) return false;
  for (size_t at = 0; at + width <= text.size(); at += width)
    for (size_t i = 0; i < width; ++i)
      if ((text[at + i] != '\0') != (i == letterAt)) return false;
  return true;
}

/// "UTF-16LE" ...; empty where nothing speaks for one of these.
std::string wideEncoding(std::string_view text) {
  for (const Mark& mark : kMarks)
    if (text.starts_with(mark.bytes)) return mark.encoding;
  const std::string_view head = text.substr(0, std::min(text.size(), kLooked) / 4 * 4);
  for (const auto& [width, letterAt, name] :
       {std::tuple{4, 0, "UTF-32LE"}, {4, 3, "UTF-32BE"}, {2, 0, "UTF-16LE"}, {2, 1, "UTF-16BE"}})
    if (looksWide(head, static_cast<size_t>(width), static_cast<size_t>(letterAt))) return name;
  return "";
}

std::string converted(const std::string& file, const std::string& encoding) {
  return fmt::format("; expected UTF-8: convert it with iconv -f {} -t UTF-8 {}", encoding,
                     printable(file, 200));
}

/// A byte of Latin-1 or Windows-1252 that prints, in a file that holds no control characters.
bool looksLatin(std::string_view text, unsigned char found) {
  return found >= 0x80 && std::none_of(text.begin(), text.end(), [](unsigned char c) {
           return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
         });
}

}  // namespace

std::optional<EncodingFault> findEncodingFault(std::string_view text, const std::string& file) {
  const std::string valid = validUtf8(text);
  const size_t nul = text.find('\0');
  if (valid == text && nul == std::string_view::npos) return std::nullopt;
  if (const std::string wide = wideEncoding(text); !wide.empty())
    return EncodingFault{0, "the file is encoded as " + wide + converted(file, wide)};
  const auto invalid = std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first;
  auto bad = static_cast<size_t>(invalid - text.begin());
  // U+FFFD, which stands for an invalid byte, begins with 0xEF 0xBF itself.
  if (bad >= 2 && text.substr(bad - 2, 2) == "\xEF\xBF") bad -= 2;
  if (bad >= 1 && text[bad - 1] == '\xEF') bad -= 1;
  if (nul < bad) return EncodingFault{nul, "found a NUL byte; expected a text file in UTF-8"};
  const auto byte = static_cast<unsigned char>(text[bad]);
  if (looksLatin(text, byte))
    return EncodingFault{
        bad, fmt::format("the byte 0x{:02x} is not valid UTF-8, the file seems to be encoded as Latin-1 or "
                         "Windows-1252{}",
                         byte, converted(file, "WINDOWS-1252"))};
  return EncodingFault{
      bad, fmt::format("the byte 0x{:02x} is not valid UTF-8; expected a text file in UTF-8", byte)};
}

}  // namespace muster
