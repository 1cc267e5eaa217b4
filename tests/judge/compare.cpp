#include "compare.h"

#include <cmath>
#include <cstdio>

namespace moe::judge {
namespace {

// One judged row: flags its wrong elements and adds up squares.
struct RowSums {
  double error = 0.0;
  double reference = 0.0;
};

// Of the row's numbers: models have infinities, NaN and kUntouched in it too.
double row_rms(const Matrix& matrix, int64_t row) {
  double squares = 0.0;
  int numbers = 0;
  for (int c = 0; c < matrix.columns; ++c) {
    const double value = matrix.at(row, c);
    if (!(std::fabs(value) < 1e100)) continue;
    squares += value * value;
    ++numbers;
  }
  return numbers > 0 ? std::sqrt(squares / numbers) : 0.0;
}

// What the two types of output differ in; the first argument only chooses.
double ulp_of(Bf16, double value) {
  return bf16_ulp(value);
}
double ulp_of(Fp32, double value) {
  return fp32_ulp(value);
}
float rounded_to(Bf16, double value) {
  return to_float(to_bf16(value));
}
float rounded_to(Fp32, double value) {
  return to_float(to_fp32(value));
}

template <class T>
void note_wrong(Difference& d, int64_t row, int column, T got, double want, T poison) {
  if (d.wrong_elements++ == 0) {
    d.first_row = row;
    d.first_column = column;
    d.first_got = to_float(got);
    d.first_want = want;
  }
  if (got == poison) ++d.untouched;
  if (is_nan(got)) ++d.nan;
  if (to_float(got) == 0.0f) ++d.zero;
}

template <class T>
Difference compare_values(const std::vector<T>& out,
                          const Matrix& reference,
                          const std::vector<uint8_t>& judged,
                          T poison,
                          bool exact,
                          const Gates& gates) {
  Difference d;
  d.wrong.assign(out.size(), 0);
  std::vector<uint8_t> wrong_columns(static_cast<size_t>(reference.columns), 0);
  RowSums all;
  for (int64_t row = 0; row < reference.rows; ++row) {
    if (judged[static_cast<size_t>(row)] == 0) continue;
    const double rms = row_rms(reference, row);
    RowSums sums;
    bool bad_row = false;
    for (int c = 0; c < reference.columns; ++c) {
      const size_t index = static_cast<size_t>(row) * static_cast<size_t>(reference.columns) +
                           static_cast<size_t>(c);
      const double want = reference.at(row, c);
      const double error = std::fabs(static_cast<double>(to_float(out[index])) - want);
      const double ulp = ulp_of(poison, want);
      const double allowed = ulp + gates.element * rms;
      const bool ok = exact ? to_float(out[index]) == rounded_to(poison, want) : error <= allowed;
      // Written so that NaN counts.
      const double beyond = error <= ulp / 2 ? 0.0 : error - ulp / 2;
      sums.error += beyond * beyond;
      sums.reference += want * want;
      ++d.judged_elements;
      if (!(error / allowed <= d.worst)) d.worst = std::isnan(error) ? INFINITY : error / allowed;
      if (ok) continue;
      d.wrong[index] = 1;
      wrong_columns[static_cast<size_t>(c)] = 1;
      bad_row = true;
      note_wrong(d, row, c, out[index], want, poison);
    }
    const double row_error = std::sqrt(sums.error / (sums.reference > 0.0 ? sums.reference : 1.0));
    if (!(row_error <= d.worst_row)) d.worst_row = row_error;
    if (!exact && !(row_error <= gates.row)) bad_row = true;
    if (bad_row) d.rows.push_back(row);
    all.error += sums.error;
    all.reference += sums.reference;
  }
  for (int c = 0; c < reference.columns; ++c) {
    if (wrong_columns[static_cast<size_t>(c)] != 0) d.columns.push_back(c);
  }
  d.total = std::sqrt(all.error / (all.reference > 0.0 ? all.reference : 1.0));
  d.right = d.rows.empty() && (exact || d.total <= gates.total);
  return d;
}

template <class T>
Agreement agreement_of(const std::vector<T>& out,
                       const Matrix& model,
                       const Difference& difference,
                       const std::vector<uint8_t>& judged,
                       T poison,
                       double slack) {
  int64_t all = 0;
  int64_t agreed = 0;
  int64_t wrong = 0;
  int64_t agreed_wrong = 0;
  for (int64_t row = 0; row < model.rows; ++row) {
    if (judged[static_cast<size_t>(row)] == 0) continue;
    const double rms = row_rms(model, row);
    for (int c = 0; c < model.columns; ++c) {
      const size_t index =
          static_cast<size_t>(row) * static_cast<size_t>(model.columns) + static_cast<size_t>(c);
      const double said = model.at(row, c);
      if (said == kAnything) continue;
      const double got = to_float(out[index]);
      bool same = false;
      if (said == kUntouched) {
        same = out[index] == poison;
      } else if (std::isnan(said)) {
        same = is_nan(out[index]) && out[index] != poison;
      } else if (slack == kModelExact) {
        same = to_float(out[index]) == rounded_to(poison, said);
      } else {
        same = got == said || std::fabs(got - said) <= 2 * ulp_of(poison, said) + slack * rms;
      }
      ++all;
      wrong += difference.wrong[index];
      agreed += same ? 1 : 0;
      agreed_wrong += same && difference.wrong[index] != 0 ? 1 : 0;
    }
  }
  Agreement result;
  if (all > 0) result.on_all = static_cast<double>(agreed) / static_cast<double>(all);
  if (wrong > 0) result.on_wrong = static_cast<double>(agreed_wrong) / static_cast<double>(wrong);
  return result;
}

}  // namespace

Difference compare(const std::vector<Bf16>& out,
                   const Matrix& reference,
                   const std::vector<uint8_t>& judged,
                   Bf16 poison,
                   bool exact,
                   const Gates& gates) {
  return compare_values(out, reference, judged, poison, exact, gates);
}

Difference compare(const std::vector<Fp32>& out,
                   const Matrix& reference,
                   const std::vector<uint8_t>& judged,
                   Fp32 poison,
                   bool exact,
                   const Gates& gates) {
  return compare_values(out, reference, judged, poison, exact, gates);
}

Agreement agreement(const std::vector<Bf16>& out,
                    const Matrix& model,
                    const Difference& difference,
                    const std::vector<uint8_t>& judged,
                    Bf16 poison,
                    double slack) {
  return agreement_of(out, model, difference, judged, poison, slack);
}

Agreement agreement(const std::vector<Fp32>& out,
                    const Matrix& model,
                    const Difference& difference,
                    const std::vector<uint8_t>& judged,
                    Fp32 poison,
                    double slack) {
  return agreement_of(out, model, difference, judged, poison, slack);
}

std::string describe(const Difference& d, const std::string& name) {
  char text[256];
  if (d.wrong_elements == 0) {
    std::snprintf(text, sizeof text,
                  "no single value is far off, but whole rows are: worst row %.2e, all %.2e",
                  d.worst_row, d.total);
    return text;
  }
  char worst[64] = "NaN among them";
  if (std::isfinite(d.worst)) {
    std::snprintf(worst, sizeof worst, "worst %.3gx the allowed error", d.worst);
  }
  std::snprintf(text, sizeof text,
                "%lld of %lld values wrong, %s; first %s[%lld][%d]: got %.6g, want %.6g",
                static_cast<long long>(d.wrong_elements), static_cast<long long>(d.judged_elements),
                worst, name.c_str(), static_cast<long long>(d.first_row), d.first_column,
                static_cast<double>(d.first_got), d.first_want);
  return text;
}

}  // namespace moe::judge
