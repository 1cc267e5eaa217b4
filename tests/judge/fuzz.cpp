#include "fuzz.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

namespace moe::judge {
namespace {

constexpr int kMostFailures = 3;  // then it is time to look at them
constexpr int kMostShrinks = 80;

std::string name_of(const FuzzTarget& target, const Genes& genes) {
  std::string name = "fuzz/" + target.name;
  for (const int gene : genes) name += "_" + std::to_string(gene);
  return name;
}

Genes draw(const FuzzTarget& target, Random& random) {
  Genes genes;
  for (const Gene& gene : target.genes) {
    const double share = random.uniform();
    const bool plain = gene.rare && random.integer(0, 7) != 0;
    // Small values are cheap and the edges are among them; large ones come now and then.
    const double skewed = gene.high - gene.low > 8 ? share * share : share;
    const int value = gene.low + static_cast<int>(skewed * (gene.high - gene.low + 1));
    genes.push_back(plain ? gene.low : std::min(value, gene.high));
  }
  return genes;
}

CaseResult run(const FuzzTarget& target, const Genes& genes) {
  Suite::get().forgive();
  return target.run(name_of(target, genes), genes);
}

bool failed(const CaseResult& result) {
  return result.verdict.state == State::kWrong || result.verdict.state == State::kCrash ||
         result.verdict.state == State::kHang;
}

}  // namespace

const char* kept(const std::string& text) {
  static std::set<std::string> texts;
  return texts.insert(text).first->c_str();
}

std::optional<Genes> genes_in(const FuzzTarget& target, const std::string& case_name) {
  const std::string start = "fuzz/" + target.name + "_";
  if (case_name.rfind(start, 0) != 0) return {};
  std::istringstream numbers(case_name.substr(start.size()));
  Genes genes;
  for (std::string word; std::getline(numbers, word, '_');)
    genes.push_back(std::atoi(word.c_str()));
  bool legal = genes.size() == target.genes.size();
  for (size_t i = 0; legal && i < genes.size(); ++i) {
    legal = genes[i] >= target.genes[i].low && genes[i] <= target.genes[i].high;
  }
  if (!legal || name_of(target, genes) != case_name) return {};
  return genes;
}

// One number after another: to the lowest if the case fails with it, else to where it begins to
// fail, found by halving.
CaseResult shrink(const FuzzTarget& target, Genes genes, CaseResult result) {
  int left = kMostShrinks;
  const auto fails_with = [&](size_t i, int value) {
    if (left-- <= 0) return false;
    Genes candidate = genes;
    candidate[i] = value;
    const CaseResult other = run(target, candidate);
    const bool same = failed(other) && other.verdict.state == result.verdict.state &&
                      other.verdict.code == result.verdict.code;
    if (!same) return false;
    genes = candidate;
    result = other;
    return true;
  };
  for (bool smaller = true; smaller && left > 0;) {
    smaller = false;
    for (size_t i = 0; i < genes.size(); ++i) {
      int passing = target.genes[i].low;
      if (genes[i] == passing) continue;
      if (fails_with(i, passing)) {
        smaller = true;
        continue;
      }
      while (genes[i] - passing > 1 && left > 0) {
        const int value = passing + (genes[i] - passing) / 2;
        if (fails_with(i, value)) {
          smaller = true;
        } else {
          passing = value;
        }
      }
    }
  }
  return result;
}

void fuzz(const std::vector<FuzzTarget>& targets, double seconds) {
  using Clock = std::chrono::steady_clock;
  Suite& suite = Suite::get();
  Random random(mix(suite.seed(), "fuzz"));
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  int failures = 0;
  for (size_t turn = 0; elapsed() < seconds && failures < kMostFailures; ++turn) {
    const FuzzTarget& target = targets[turn % targets.size()];
    const Genes genes = draw(target, random);
    CaseResult result = run(target, genes);
    if (failed(result)) {
      ++failures;
      result = shrink(target, genes, result);
    }
    suite.record(result.record, result.verdict);
  }
}

bool run_fuzz_case(const std::vector<FuzzTarget>& targets, const std::string& case_name) {
  for (const FuzzTarget& target : targets) {
    const auto genes = genes_in(target, case_name);
    if (!genes) continue;
    const CaseResult result = run(target, *genes);
    Suite::get().record(result.record, result.verdict);
    return true;
  }
  return false;
}

}  // namespace moe::judge
