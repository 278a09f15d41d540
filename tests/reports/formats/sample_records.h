// SPDX-License-Identifier: Apache-2.0
// Records of every kind, for the tests of all formats.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/runner/record/sample/sample_record.h"

namespace muster::testing {

/// A record of each kind, by name: healthy, sick, rejudged, redacted, partial, waived, unknown SKU,
/// incomplete, interrupted, imported, measured (not simulated), and one without anything.
std::vector<std::pair<std::string, Record>> everyKindOfRecord();

/// The sick one with `text` in every field that an input, a plugin or the machine can set.
Record recordWithText(const std::string& text);

/// Texts that mean something to a format, a terminal, a spreadsheet or a ticket.
std::vector<std::string> hostileTexts();

/// No byte of a file moves a cursor, turns the direction of text or is invalid.
void expectVisible(const std::string& text, bool tabs);

/// The elements of a page, each with the names of its attributes.
std::set<std::string> elementsOf(const std::string& html);

}  // namespace muster::testing
