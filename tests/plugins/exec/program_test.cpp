// SPDX-License-Identifier: Apache-2.0
// Which programs and variables exec.command passes, and how a program's end is judged.
#include "plugins/exec/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/support/process.h"

namespace muster::exec {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A directory of the operator's with programs, which MUSTER_EXEC_DIR lists.
class ExecProgram : public ::testing::Test {
 protected:
  ExecProgram() {
    dir_.write("bin/note", "");
    setenv("MUSTER_EXEC_DIR", bin().c_str(), 1);
  }
  ~ExecProgram() override { unsetenv("MUSTER_EXEC_DIR"); }

  [[nodiscard]] fs::path bin() const { return dir_.path() / "bin"; }
  [[nodiscard]] std::string script(const std::string& name, const std::string& body) const {
    const fs::path path = dir_.write("bin/" + name, "#!/bin/sh\n" + body);
    fs::permissions(path, fs::perms(0755));
    return path.string();
  }
  ProgramRun run(const std::string& body, CommandParams params = {}) {
    if (params.timeLimit == 0) params.timeLimit = 60;
    if (params.outputLimit == 0) params.outputLimit = 1 << 20;
    params.program = script("check", body);
    auto environment = allowedEnvironment(params.environment);
    EXPECT_TRUE(environment.ok()) << environment.error().text();
    return runToEnd(params, params.program, *environment, work_.path(), [] { return false; });
  }
  static std::string refusal(const std::string& program) {
    const auto allowed = allowedProgram(program);
    EXPECT_FALSE(allowed.ok()) << program;
    return allowed.ok() ? "" : allowed.error().text();
  }
  testing::TempDir dir_;
  testing::TempDir work_;
};

TEST_F(ExecProgram, OnlyThoseOfTheOperatorsDirectoriesRun) {
  const std::string mine = script("check", "");
  EXPECT_TRUE(allowedProgram(mine).ok());
  EXPECT_THAT(refusal("/bin/sh"), HasSubstr("it is not in"));
  EXPECT_THAT(refusal("check"), HasSubstr("expected an absolute path"));
  EXPECT_THAT(refusal((bin() / ".." / "bin" / "check").string()), HasSubstr("without \".\" and \"..\""));
  EXPECT_THAT(refusal((bin() / "missing").string()), HasSubstr("missing"));
  dir_.write("bin/below/check", "#!/bin/sh\n");
  EXPECT_THAT(refusal((bin() / "below/check").string()), HasSubstr("it is not in"));
  unsetenv("MUSTER_EXEC_DIR");
  EXPECT_THAT(refusal(mine), HasSubstr("MUSTER_EXEC_DIR is not set"));
}

TEST_F(ExecProgram, WhatOthersCouldReplaceIsRefused) {
  const std::string mine = script("check", "");
  fs::permissions(mine, fs::perms(0777));
  EXPECT_THAT(refusal(mine), HasSubstr("refused: the program is writable by others"));
  fs::permissions(mine, fs::perms(0755));
  EXPECT_TRUE(allowedProgram(mine).ok());
  fs::permissions(bin(), fs::perms(0777));
  EXPECT_THAT(refusal(mine), HasSubstr("is writable by others"));
}

TEST_F(ExecProgram, GetsItsArgumentsAsTheyAre) {
  CommandParams params;
  params.args = {"$(touch x)", "a b", "; exit 7"};
  const ProgramRun ended = run("printf '%s\\n' \"$@\"\n", params);
  EXPECT_TRUE(ended.status.ok());
  EXPECT_EQ(ended.out, "$(touch x)\na b\n; exit 7\n");
  EXPECT_TRUE(fs::is_empty(work_.path()));
}

TEST_F(ExecProgram, GetsAListedEnvironmentAndItsFolderAlone) {
  setenv("EXEC_TEST_SEEN", "yes", 1);
  setenv("EXEC_TEST_HIDDEN", "secret", 1);
  CommandParams params;
  params.environment = {"EXEC_TEST_SEEN", "EXEC_TEST_UNSET"};
  const ProgramRun ended = run("env; pwd\n", params);
  EXPECT_THAT(ended.out, HasSubstr("EXEC_TEST_SEEN=yes\n"));
  EXPECT_EQ(ended.out.find("secret"), std::string::npos) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("PATH=/usr/local/sbin:"));
  EXPECT_THAT(ended.out, HasSubstr(fs::canonical(work_.path()).string() + "\n"));
  for (const char* name : {"LD_PRELOAD=x", "PATH", "MUSTER_TOKEN", "A B", ""})
    EXPECT_FALSE(allowedEnvironment({name}).ok()) << name;
}

TEST_F(ExecProgram, AnyOtherEndThanTheExpectedOneIsAnError) {
  EXPECT_THAT(run("echo no disk >&2; exit 3\n").status.error().text(),
              HasSubstr("it ended with exit code 3; expected 0; it printed last: no disk"));
  CommandParams params;
  params.exitCode = 3;
  EXPECT_TRUE(run("exit 3\n", params).status.ok());
  EXPECT_THAT(run("exit 0\n", params).status.error().text(), HasSubstr("exit code 0; expected 3"));
  EXPECT_THAT(run("kill -SEGV $$\n").status.error().text(), HasSubstr("ended by signal 11"));
}

TEST_F(ExecProgram, AHangAndAFloodAreKilledAndTheirOutputKept) {
  CommandParams params;
  params.timeLimit = 0.5;
  const ProgramRun hung = run("echo begun; sleep 3600 & wait\n", params);
  EXPECT_THAT(hung.status.error().text(), HasSubstr("did not end within 0.5 s; it printed last: begun"));
  EXPECT_EQ(hung.out, "begun\n");
  params.timeLimit = 60;
  params.outputLimit = 4096;
  const ProgramRun flood = run("while :; do echo 123456789; done\n", params);
  EXPECT_THAT(flood.status.error().text(), HasSubstr("printed more than 4 KiB"));
  EXPECT_THAT(flood.out, StartsWith("123456789\n"));
}

}  // namespace
}  // namespace muster::exec
