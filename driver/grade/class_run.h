// A whole class: every submission's stages, in parallel, each finished one kept on disk at once so
// that an interrupted run goes on where it stopped.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/grade/cost_gate.h"
#include "driver/grade/examine.h"
#include "driver/grade/recipe.h"
#include "driver/grade/submissions.h"
#include "driver/grade/workshop.h"

namespace moe::grade {

// What all submissions share: made once, before the first of them.
struct Prepared {
  std::vector<Recipe> recipes;                              // of the stages, in their order
  std::map<std::string, std::vector<CaseResult>> expected;  // by stem: the solution's cases
  std::map<std::string, std::string> keys;  // by stem: of everything but the submission itself
  std::shared_ptr<CostGate> cost_gate;      // null where no points are for cost
};

struct Progress {
  std::size_t done = 0;    // stages of submissions
  std::size_t reused = 0;  // of them: known from an earlier run
  std::size_t all = 0;
  double seconds = 0;  // since the start
};

class ClassRun {
 public:
  ClassRun(const Confinement& confinement,
           const Workshop& workshop,
           Examiner& examiner,
           const Prepared& prepared,
           std::filesystem::path out)
      : confinement_(confinement),
        workshop_(workshop),
        examiner_(examiner),
        prepared_(prepared),
        out_(std::move(out)) {}

  // Calls `on_progress` from this thread, a few times a second, and `on_student` for each one that
  // is complete. Throws driver::Interrupted when the user stops it; what is finished stays.
  std::vector<StudentResult> run(const std::vector<Submission>& submissions,
                                 int jobs,
                                 const std::function<void(const Progress&)>& on_progress,
                                 const std::function<void(const StudentResult&)>& on_student);

 private:
  void work(const std::vector<Submission>& submissions, int worker);
  void grade_student(std::size_t index, const Submission& submission, int worker);
  StageResult grade_stage(const Recipe& recipe,
                          const std::string& source,
                          const std::filesystem::path& folder,
                          int worker);
  void finish_stage(bool reused);

  const Confinement& confinement_;
  const Workshop& workshop_;
  Examiner& examiner_;
  const Prepared& prepared_;
  std::filesystem::path out_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  Progress progress_;
  std::vector<StudentResult> results_;
  std::vector<std::size_t> finished_;  // students to be told of
  int working_ = 0;
  int interrupted_ = 0;  // the signal
  std::string broken_;   // an exception of ours
};

// A name that is safe as a file's, and different for different students.
std::string file_name_of(const std::string& student);

}  // namespace moe::grade
