// m6_wgmma computes m2's product, so m2's oracle judges it. This is the same product as the tiles
// in shared memory hold it: what a mistake with tiles computes can be said in these terms.
#pragma once

#include <functional>
#include <vector>

#include "judge/compare.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::oracle {

inline constexpr int kWgmmaRows = 64;     // of A, in one wgmma
inline constexpr int kTileColumns = 128;  // rows of W in one tile
inline constexpr int kTileDepth = 64;     // columns of either tile
inline constexpr int kStepDepth = 16;     // of one wgmma
inline constexpr int kChunkValues = 8;    // bf16 in 16 bytes, the unit of the swizzle

// The tiles of A that align's table makes, one below the other, and those of W of each expert.
class GemmTiles {
 public:
  explicit GemmTiles(const GemmProblem& problem);
  int depth() const;  // D, rounded up to whole tiles

  // Row `position` of the table: zeros where it is padding, and behind column D.
  double a(int position, int d) const;
  // The same without the mask at D: what follows in memory (NaN behind the array).
  double a_unmasked(int position, int d) const;
  // Zeros behind row N and column D.
  double w(int expert, int column, int d) const;

  // One term of the sum for a row of the table, its expert, and a column of out.
  using Term = std::function<double(int position, int expert, int column, int d)>;
  // out [T*K, N], each value the sum of `term` over depth().
  judge::Matrix sum(const Term& term) const;

 private:
  const GemmProblem& p_;
};

}  // namespace moe::oracle
