// `drill tune`: measures m4's tiles on this GPU and writes what is best into the table.
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>

#include "driver/measure.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/tiles.h"
#include "driver/trash.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr const char* kTable = "drills/m4_group_m.tiles.h";

std::string microseconds(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", us);
  return text;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

int fault(const std::string& what) {
  say("drill tune: " + what + "\n");
  return static_cast<int>(Verdict::kFault);
}

}  // namespace

int write_tuned_line(const Course& course, const std::string& report, bool only_print) {
  const std::filesystem::path file = course.root / kTable;
  const std::string before = read_file(file);
  try {
    TuneReport best = parse_tune_report(report);
    best.line.measured = best.gpu + ", " + today();
    const std::string line = text_of(best.line);
    const std::string times =
        microseconds(best.us) + " with this line, " + microseconds(best.us_before) + " without it";
    if (tuned_tile(before, best.line.layer) == best.line.tile) {
      say(wrapped("kept   ", std::string(kTable) + " has this line already: " + line));
      return 0;
    }
    const std::string after = with_tuned_line(before, best.line);
    if (only_print) {
      say(wrapped("line   ", "for " + std::string(kTable) + ", not written: " + line));
      say(wrapped("layer  ", times));
      return 0;
    }
    const std::filesystem::path copy = keep_copy(course, file);
    // In one step, so that a build that runs meanwhile sees the old table or the new one.
    const std::filesystem::path fresh = file.string() + ".new";
    std::ofstream(fresh, std::ios::binary) << after << std::flush;
    if (read_file(fresh) != after) return fault(fresh.string() + " cannot be written");
    std::filesystem::rename(fresh, file);
    say(wrapped("wrote  ", std::string(kTable) + ": " + line));
    say(wrapped("layer  ", times));
    say("undo   " + undo_command(course, copy, file) + "\n");
    return 0;
  } catch (const std::exception& error) {
    return fault(std::string(error.what()) + ". " + kTable + " was not changed");
  }
}

int run_tune(const Course& course, const TuneOptions& options) {
  const Backend backend = choose_backend(Wish::kGpu);
  if (const int code = prepare_measurement(course, backend, {}, {"m4_group_m.tune"})) return code;
  const std::filesystem::path report = course.tree("cuda") / "tune.json";
  std::error_code ignored;
  std::filesystem::remove(report, ignored);
  std::vector<std::string> arguments = {course.tree("cuda") / "runners" / "m4_group_m.tune",
                                        "--report", report};
  for (const int size : options.sizes) arguments.push_back(std::to_string(size));
  if (const int code = run_and_show(arguments)) return code;
  return write_tuned_line(course, read_file(report), options.only_print);
}

}  // namespace moe::driver
