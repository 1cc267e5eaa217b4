// grading.toml: what is right, and what is said of what is wrong.
#include <gtest/gtest.h>

#include <vector>

#include "driver/grade/scheme.h"
#include "driver/grade/usage.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_scheme(text, "grading.toml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SchemeTest, WhatInitWritesIsTheDefaults) {
  std::vector<const Stage*> stages;
  for (const Stage& stage : kStages) stages.push_back(&stage);
  const Scheme written = parse_scheme(scheme_text(stages), "grading.toml");
  const Scheme defaults = parse_scheme("version = 1", "grading.toml");
  EXPECT_EQ(written.points, defaults.points);
  EXPECT_EQ(written.groups, defaults.groups);
  EXPECT_EQ(written.gate, defaults.gate);
  EXPECT_EQ(written.full, defaults.full);
  EXPECT_EQ(written.build.seconds, defaults.build.seconds);
  EXPECT_EQ(written.memory_gib, defaults.memory_gib);
  EXPECT_EQ(written.processes, defaults.processes);
  EXPECT_EQ(written.no_points_ratio, defaults.no_points_ratio);
  EXPECT_EQ(written.cost_share, defaults.cost_share);
  EXPECT_EQ(written.max_of_reference, defaults.max_of_reference);
  EXPECT_FALSE(written.max_bank_conflicts.has_value());
}

TEST(SchemeTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of(""), "grading.toml: the line `version = 1` is missing");
  EXPECT_EQ(error_of("version = 1\nsett = \"full\"\n"),
            "grading.toml:2: sett is not known. Did you mean set?");
  EXPECT_EQ(error_of("version = 1\n[points]\nm1 = -3\n"),
            "grading.toml:3: points.m1 must be at least 0 and at most 1e+06");
  EXPECT_EQ(error_of("version = 1\n[points]\nm99 = 3\n"),
            "grading.toml:3: points.m99 is not known. Did you mean points.m9?");
  EXPECT_EQ(error_of("version = 1\nset = \"fast\"\n"),
            "grading.toml:2: set must be one of: quick, full");
  EXPECT_EQ(error_of("version = 1\ngate = [\"tny\"]\n"),
            "grading.toml:2: gate knows only: edge, far, hidden, random, refused, tiny");
  EXPECT_EQ(error_of("version = 1\npoints = 3\n"),
            "grading.toml:2: points must be a table: [points]");
  EXPECT_NE(error_of("version = 1\n[points\n").find("grading.toml:2: "), std::string::npos);
  EXPECT_EQ(error_of("version = 1\n[performance]\nno_points_at = 1.0\n"),
            "grading.toml: performance.no_points_at must be above performance.full_points_at");
  EXPECT_EQ(error_of("version = 1\n[cost]\nmax_conflicts = 3\n"),
            "grading.toml:3: cost.max_conflicts is not known");
  EXPECT_EQ(error_of("version = 1\n[cost]\nmax_of_reference = 0.5\n"),
            "grading.toml:3: cost.max_of_reference must be at least 1 and at most 1000");
  EXPECT_EQ(error_of("version = 1\n[cost]\nshare = 0.6\n[performance]\nshare = 0.6\n"),
            "grading.toml: performance.share and cost.share are more than 1 together");
}

}  // namespace
}  // namespace moe::grade
