// Random cases that fail are made small, keep their mistake and can be run again by name.
#include "../judge/fuzz.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace moe::judge {
namespace {

const Mistake kFirst = {"X-FIRST", "x.region", "note", "First."};
const Mistake kSecond = {"X-SECOND", "x.region", "note", "Second."};

// Three numbers, whose verdict is `judge`; counts how often it ran.
struct Counted {
  int runs = 0;
  FuzzTarget target;

  explicit Counted(const std::function<Verdict(const Genes&)>& judge) {
    target = {"f",
              {{"a", 1, 200}, {"b", 0, 300}, {"broken", 0, 5, true}},
              [this, judge](const std::string& name, const Genes& genes) {
                ++runs;
                CaseResult result;
                result.record.name = name;
                result.verdict = judge(genes);
                return result;
              }};
  }
  CaseResult shrunk_from(const Genes& genes) {
    return shrink(target, genes, target.run("fuzz/f", genes));
  }
};

TEST(Fuzz, LowersEveryNumberAsFarAsTheCaseFails) {
  Counted counted(
      [](const Genes& g) { return g[0] >= 13 && g[1] >= 40 ? wrong(kFirst, {}) : Verdict{}; });
  const CaseResult result = counted.shrunk_from({177, 250, 3});
  EXPECT_EQ(result.record.name, "fuzz/f_13_40_0");
  EXPECT_EQ(result.verdict.code, "X-FIRST");
}

TEST(Fuzz, ShrinksToTheSameMistakeOnly) {
  Counted counted([](const Genes& g) { return wrong(g[0] >= 13 ? kFirst : kSecond, {}); });
  EXPECT_EQ(counted.shrunk_from({50, 9, 1}).record.name, "fuzz/f_13_0_0");
  Counted dying([](const Genes& g) {
    Verdict verdict = wrong(kFirst, {});
    verdict.state = g[1] >= 5 ? State::kCrash : State::kWrong;
    return verdict;
  });
  EXPECT_EQ(dying.shrunk_from({50, 9, 1}).record.name, "fuzz/f_1_5_0");
}

// Time is limited, and a case that fails by chance must not keep it going.
TEST(Fuzz, EndsWhereNothingFailsAgain) {
  Counted once([](const Genes&) { return Verdict{}; });
  CaseResult failed;
  failed.record.name = "fuzz/f_200_300_5";
  failed.verdict = wrong(kFirst, {});
  EXPECT_EQ(shrink(once.target, {200, 300, 5}, failed).record.name, failed.record.name);
  EXPECT_LE(once.runs, 30);
  Counted always([](const Genes&) { return wrong(kFirst, {}); });
  EXPECT_EQ(always.shrunk_from({200, 300, 5}).record.name, "fuzz/f_1_0_0");
  EXPECT_LE(always.runs, 10);
}

TEST(Fuzz, ReadsTheNumbersFromTheNameOfACase) {
  const Counted counted([](const Genes&) { return Verdict{}; });
  EXPECT_EQ(genes_in(counted.target, "fuzz/f_13_40_0"), (Genes{13, 40, 0}));
  for (const char* name :
       {"fuzz/f_0_40_0", "fuzz/f_13_301_0", "fuzz/f_13_40", "fuzz/f_13_40_0_0", "fuzz/f_013_40_0",
        "fuzz/f_13_x_0", "fuzz/g_13_40_0", "edge/f_13_40_0"}) {
    EXPECT_FALSE(genes_in(counted.target, name).has_value()) << name;
  }
}

}  // namespace
}  // namespace moe::judge
