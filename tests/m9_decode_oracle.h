// What m9_decode's routing gives: who chose which expert. Nothing in the contract says how it is
// kept; the tests use it to say of which runs a wrong output is the fault, the note for its
// example.
#pragma once

#include <vector>

#include "layer_oracle.h"

namespace moe::oracle {

struct DecodeRun {
  int expert;
  std::vector<int> flat_ids;  // in ascending order
};

// One for each expert that was hit, experts ascending.
std::vector<DecodeRun> decode_runs(const LayerProblem& p);

// Into how many parts GEMM2 cuts I; 0: no splits, T <= 4.
int decode_splits(const LayerProblem& p);

}  // namespace moe::oracle
