// What a class run leaves for people and for other programs. Every file is written from the same
// record; none is ever read back to decide anything.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "driver/grade/result.h"
#include "driver/grade/scheme.h"
#include "driver/grade/score.h"

namespace moe::grade {

struct ClassReport {
  std::string run_id;  // the same for the same input: of course, grading.toml, secret and machine
  std::string set;     // "quick" or "full"
  std::string device;  // where the kernels ran
  std::string wall;    // Confinement::word
  bool secret = false;
  bool timed = false;
  Scheme scheme;
  std::vector<const Stage*> stages;
  std::map<std::string, std::vector<CaseResult>> expected;  // by stem
  std::vector<StudentResult> students;

  StageScore score(const StudentResult& student, const Stage& stage) const;
  // The sum over the stages; false where a fault leaves one open.
  bool total(const StudentResult& student, double& earned, double& maximum) const;
};

// The sentence that a student may read about a stage or a case: cleaned of bytes that could disturb
// a terminal, a page or a parser.
std::string clean_text(const std::string& text);

std::string results_csv(const ClassReport& report);
std::string summary_csv(const ClassReport& report);
std::string results_json(const ClassReport& report);
std::string junit_xml(const ClassReport& report);
std::string gradescope_json(const ClassReport& report, const StudentResult& student);
std::string actions_json(const ClassReport& report, const StudentResult& student);
std::string student_page(const ClassReport& report, const StudentResult& student);

inline constexpr const char* kFormats[] = {"csv", "json", "junit", "gradescope", "actions"};

// Writes the chosen formats and the pages below `out`; the names of what was written.
// `schema` is the file that describes results.json.
std::vector<std::string> write_reports(const ClassReport& report,
                                       const std::vector<std::string>& formats,
                                       const std::filesystem::path& schema,
                                       const std::filesystem::path& out);

}  // namespace moe::grade
