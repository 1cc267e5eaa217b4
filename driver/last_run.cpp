#include "driver/last_run.h"

#include "driver/terminal.h"

namespace moe::driver {

const CaseRecord* LastRun::failure() const {
  for (const CaseState state : {CaseState::kHang, CaseState::kCrash, CaseState::kWrong}) {
    if (const CaseRecord* found = report.first(state)) return found;
  }
  return nullptr;
}

std::optional<LastRun> last_run(const Course& course, const Stage& stage) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path newest;
  fs::file_time_type time;
  for (const char* tree : {"cpu", "cuda"}) {
    const fs::path file = course.tree(tree) / (std::string(stage.stem) + ".mine.report.jsonl");
    const fs::file_time_type written = fs::last_write_time(file, error);
    if (error || (!newest.empty() && written <= time)) continue;
    newest = file;
    time = written;
  }
  if (newest.empty()) return std::nullopt;
  LastRun run;
  run.report = parse_report(read_file(newest));
  if (run.report.cases.empty()) return std::nullopt;
  run.verdict = verdict_of(run.report);
  const fs::file_time_type saved = fs::last_write_time(course.mine(stage), error);
  run.current = !error && saved <= time;
  return run;
}

}  // namespace moe::driver
