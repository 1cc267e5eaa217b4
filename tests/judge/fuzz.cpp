#include "fuzz.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

namespace moe::judge {
namespace {

constexpr int kMostFailures = 3;  // then it is time to look at them
constexpr int kMostShrinks = 80;

using Genes = std::vector<int>;

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

// Lowers one gene after another for as long as the case fails in the same way.
CaseResult shrink(const FuzzTarget& target, Genes genes, CaseResult result) {
  int left = kMostShrinks;
  for (bool smaller = true; smaller && left > 0;) {
    smaller = false;
    for (size_t i = 0; i < genes.size(); ++i) {
      const int low = target.genes[i].low;
      for (const int value : {low, (low + genes[i]) / 2, genes[i] - 1}) {
        if (value >= genes[i] || value < low || left-- <= 0) continue;
        Genes candidate = genes;
        candidate[i] = value;
        const CaseResult other = run(target, candidate);
        const bool same = failed(other) && other.verdict.state == result.verdict.state &&
                          other.verdict.code == result.verdict.code;
        if (!same) continue;
        genes = candidate;
        result = other;
        smaller = true;
        break;
      }
    }
  }
  return result;
}

}  // namespace

const char* kept(const std::string& text) {
  static std::set<std::string> texts;
  return texts.insert(text).first->c_str();
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
    const std::string start = "fuzz/" + target.name + "_";
    if (case_name.rfind(start, 0) != 0) continue;
    std::istringstream numbers(case_name.substr(start.size()));
    Genes genes;
    for (std::string word; std::getline(numbers, word, '_');)
      genes.push_back(std::atoi(word.c_str()));
    bool legal = genes.size() == target.genes.size();
    for (size_t i = 0; legal && i < genes.size(); ++i) {
      legal = genes[i] >= target.genes[i].low && genes[i] <= target.genes[i].high;
    }
    if (!legal || name_of(target, genes) != case_name) return false;
    const CaseResult result = run(target, genes);
    Suite::get().record(result.record, result.verdict);
    return true;
  }
  return false;
}

}  // namespace moe::judge
