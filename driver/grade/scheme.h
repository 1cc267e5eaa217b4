// grading.toml: what a stage is worth, and the limits. `drill grade --init` writes one with
// comments.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "driver/grade/result.h"
#include "driver/grade/workshop.h"

namespace moe::grade {

struct Scheme {
  bool full = true;                      // every case in every way, or each once
  std::map<std::string, double> points;  // by stage id
  std::map<std::string, double> groups;  // weight of a group of cases
  std::vector<std::string> gate;         // groups that must pass whole, or the stage gets nothing
  bool whole_groups = false;             // a group counts only when all its cases pass

  double performance_share = 0;  // of a stage's points; needs a GPU
  std::string performance_shape = "A";
  double full_points_ratio = 1.2;  // of the reference's time
  double no_points_ratio = 10;

  double cost_share = 0;  // of a stage's points; counted, not timed
  double max_of_reference = 1.25;
  std::optional<double> max_sectors_per_request;  // instead of a multiple of the reference's
  std::optional<double> max_bank_conflicts;
  std::optional<double> max_bytes_ratio;

  BuildLimits build;
  double stage_seconds = 300;
  double memory_gib = 4;
  int processes = 24;

  bool show_hidden_names = false;  // on students' pages
};

// Throws UsageError, with the line, for a file that is not a grading.toml.
Scheme read_scheme(const std::filesystem::path& file);
Scheme parse_scheme(const std::string& text, const std::string& name);

// The defaults for these stages, as a commented file.
std::string scheme_text(const std::vector<const Stage*>& stages);

}  // namespace moe::grade
