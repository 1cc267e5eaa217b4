// A run of `drill grade`, from its options to the exit code.
#pragma once

#include <string>

#include "driver/course.h"

namespace moe::grade {

struct GradeOptions {
  std::string submissions;
  std::string out;
  std::string stages;   // "m1,m2"; empty: all
  std::string formats;  // "csv,json"; empty: all
  std::string scheme;   // empty: grading.toml where there is one, else the defaults
  std::string secret;
  std::string secret_file;
  int jobs = 0;  // 0: as many as cores
  bool quick = false;
  bool gpu = false;
  bool init = false;
  bool trust = false;
};

int run_grading(const driver::Course& course, const GradeOptions& options);

}  // namespace moe::grade
