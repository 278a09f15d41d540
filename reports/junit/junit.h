// SPDX-License-Identifier: Apache-2.0
// junit.xml: the record for CI systems.
#pragma once

#include <string>

#include "reports/junit/text_limit.h"
#include "runner/record/record.h"

namespace muster {

/// One testsuite per stage and one testcase per verdict, plus a testcase for the acceptance itself, so that a
/// run which is not accepted never shows all green. fail and flaky become failures, error an error, skipped
/// and what is judged elsewhere skipped. The text is valid XML 1.0 whatever the record holds. What `limit`
/// leaves out is a skipped testcase of its own.
std::string renderJunit(const Record& record, TextLimit& limit);
std::string renderJunit(const Record& record);

}  // namespace muster
