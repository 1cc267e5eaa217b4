// compare.h: when a matrix of bf16 or fp32 values is right. Gates are per row and per element,
// never a share of elements; they are written as !(error <= gate), so that NaN never passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bf16.h"
#include "fp32.h"
#include "verdict.h"

namespace moe::judge {

// Relative gates. Rounding to the type of the output is not counted as an error: what each value is
// off by beyond half an ulp is. tests/judge_test/calibration_test.cpp holds them against right
// kernels that add in other orders and against the mildest mistakes.
struct Gates {
  double total = 1e-4;    // norm(error beyond rounding) / norm(reference) over all rows
  double row = 3e-4;      // the same for each row
  double element = 3e-3;  // of the row's rms, on top of one ulp of the reference
};
// Of fp32 outputs: tensor cores of some GPUs sum products of 8-bit codes with 14 bits, which puts
// single values off by up to 2.9e-3 of the rms.
inline constexpr Gates kFp32Gates = {5e-4, 1e-3, 8e-3};

struct Matrix {
  int64_t rows = 0;
  int columns = 0;
  std::vector<double> values;  // [rows, columns]
  double at(int64_t row, int column) const {
    return values[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                  static_cast<size_t>(column)];
  }
};

// What differs between an output and its reference.
struct Difference {
  int64_t wrong_elements = 0;
  int64_t judged_elements = 0;
  int64_t untouched = 0;  // wrong elements that still hold the poison
  int64_t nan = 0;
  int64_t zero = 0;    // wrong elements that are 0
  double worst = 0.0;  // largest error of a value in units of what is allowed
  int64_t first_row = -1;
  int first_column = -1;
  float first_got = 0.0f;
  double first_want = 0.0;
  double total = 0.0;  // relative error of all rows, beyond rounding
  double worst_row = 0.0;
  std::vector<int64_t> rows;   // rows with a wrong element, or beyond the row gate
  std::vector<int> columns;    // columns with a wrong element
  std::vector<uint8_t> wrong;  // [rows, columns] flags
  bool right = true;
};

// `judged[row]` says which rows count. With `exact`, out must equal the reference rounded to its
// type.
Difference compare(const std::vector<Bf16>& out,
                   const Matrix& reference,
                   const std::vector<uint8_t>& judged,
                   Bf16 poison,
                   bool exact,
                   const Gates& gates = {});
Difference compare(const std::vector<Fp32>& out,
                   const Matrix& reference,
                   const std::vector<uint8_t>& judged,
                   Fp32 poison,
                   bool exact,
                   const Gates& gates = kFp32Gates);

// How far an output may be from the model that explains it, in units of the row's rms, besides two
// ulps. kModelExact: not at all, for mistakes that are as small as that.
inline constexpr double kModelSlack = 4e-3;
inline constexpr double kFp32ModelSlack = 5e-4;
inline constexpr double kModelExact = -1.0;

// The share of wrong elements that `model` explains (NaN explains NaN), and the share of all judged
// elements on which it agrees with the output.
struct Agreement {
  double on_wrong = 0.0;
  double on_all = 0.0;
};
Agreement agreement(const std::vector<Bf16>& out,
                    const Matrix& model,
                    const Difference& difference,
                    const std::vector<uint8_t>& judged,
                    Bf16 poison,
                    double slack = kModelSlack);
Agreement agreement(const std::vector<Fp32>& out,
                    const Matrix& model,
                    const Difference& difference,
                    const std::vector<uint8_t>& judged,
                    Fp32 poison,
                    double slack = kFp32ModelSlack);

// A value that no arithmetic gives: a model's word for "left as it was".
inline constexpr double kUntouched = 1.2345678901234567e300;
// And for "depends on what lies in memory there": such values count neither for nor against it.
inline constexpr double kAnything = 1.2345678901234567e301;

// "160 of 320 values wrong, worst 178x the allowed error; first out[1][0]: got 0.4375, want -1.125"
std::string describe(const Difference& difference, const std::string& name);

}  // namespace moe::judge
