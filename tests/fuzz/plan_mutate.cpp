// SPDX-License-Identifier: Apache-2.0
// Feeds thousands of mutated plans to what `muster check` does: plan_mutate CORPUS TOML_COUNT LUA_COUNT
// [SEED]. Ends 1 when one crashes, hangs, or gives an outcome that must not be; prints that plan.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "runner/system/files.h"
#include "tests/fuzz/mutate_run.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/plan_check.h"

namespace muster::testing {
namespace {

const std::vector<std::string> kTomlWords = {"nan",
                                             "-inf",
                                             "[[stage]]\n",
                                             "[stage.matrix]\n",
                                             "[stage.params]\n",
                                             "[[stage.expect]]\n",
                                             "\"\"\"",
                                             "'''",
                                             "\\u0000",
                                             "\"\\U0010FFFF\"",
                                             "1979-05-27T07:32:00Z",
                                             "0xffffffffffffffff",
                                             "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r = 1\n",
                                             "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                                             "{ a = { a = { a = { a = {",
                                             "\"650 TFLOP/s\"",
                                             "\"8 GiB\"",
                                             "\"-3%\"",
                                             "true",
                                             "needs = [\"gemm\"]\n",
                                             "include = [\"limits.toml\"]\n",
                                             "\n#:included limits.toml ",
                                             "\n#| ",
                                             "[expectations.slow]\n",
                                             "[[expectations.slow]]\n",
                                             "expect = [\"slow\"]\n",
                                             "set = \"slow\"\n",
                                             "metric = [\"compute.gemm_time\"]\n",
                                             "contains = \"tsc\"\n",
                                             "test = \"compute.gemm\"\n",
                                             "name = \"\\u001b[31m\"\n",
                                             "\xEF\xBB\xBF",
                                             "\xC3",
                                             "\xC3\xA9",
                                             "\xE2\x80\x83",
                                             "\xE3\x80\x81",
                                             "\r\n",
                                             "#"};
const std::vector<std::string> kLuaWords = {"end",
                                            "function(m) return true end",
                                            "stage{",
                                            "expect{",
                                            "plan{",
                                            "}",
                                            "nil",
                                            "0/0",
                                            "1/0",
                                            "[[",
                                            "]]",
                                            "--[[",
                                            "[\"repeat\"]",
                                            "\"\\xff\"",
                                            "(\"x\"):rep(1000)",
                                            "while true do end ",
                                            "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{",
                                            "local x = ",
                                            "return ",
                                            "goto x",
                                            "::x::",
                                            "os.exit(1)",
                                            "io.open(\"x\")",
                                            "#",
                                            "..",
                                            "...",
                                            "1 << 62",
                                            "string.format(\"%q\", 1/3)",
                                            "for i = 1, 100 do ",
                                            "\x1bLua",
                                            "table.unpack({1, 2})",
                                            "\r\n",
                                            "pairs",
                                            "tostring({})",
                                            "~",
                                            "//",
                                            "0x1p4"};

std::vector<std::string> seedsOf(const std::filesystem::path& corpus, const std::string& extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(corpus))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths)
    if (auto text = readFile(path); text.ok()) seeds.push_back(*text);
  return seeds;
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  using namespace muster::testing;
  if (argc < 4) {
    std::fprintf(stderr, "usage: plan_mutate CORPUS TOML_COUNT LUA_COUNT [SEED]\n");
    return 2;
  }
  const uint64_t seed = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 1;
  const auto hunt = [&](const char* what, const char* extension, const std::vector<std::string>& words,
                        const char* count, InputCheck check) {
    const std::vector<std::string> seeds = seedsOf(argv[1], extension);
    Mutator mutator(seeds, words, seed);
    return runMutations(
        what, seeds, [&] { return mutator.next(); }, std::atol(count), check);
  };
  const bool toml = hunt("toml plans", ".toml", kTomlWords, argv[2], checkTomlPlan);
  const bool lua = hunt("lua plans", ".lua", kLuaWords, argv[3], checkLuaPlan);
  return toml && lua ? 0 : 1;
}
