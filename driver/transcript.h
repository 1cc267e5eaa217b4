// The words of a run: a report in, the lines on the terminal out. Nothing here reads or runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/build.h"
#include "driver/course.h"
#include "driver/report.h"
#include "driver/terminal.h"

namespace moe::driver {

// What the report does not know.
struct Scene {
  Stage stage{};
  std::string side;           // "mine" or "solution"
  std::string again;          // the command that repeats this run, without --case and --seed
  std::string source;         // text of the file that ran, for the lines of regions
  std::vector<Blank> blanks;  // of the learner's file; empty for the solution
  bool emulator = true;
};

// "m2  grouped GEMM with gather   mine/m2_grouped_gemm.cu   emulator (no GPU found)"
std::string header_text(const Scene& scene, std::string_view backend, const Paint& paint);

// "test   tiny 6/6  edge 10/10   seed 8841   1.4 s"
std::string test_text(const Report& report, double seconds);

// What the learner's code printed, marked as theirs; only its first lines.
std::string output_text(const Report& report, const Scene& scene);

// The verdict and what belongs to it. The first word of one line is PASS, WRONG, TODO, ...
std::string verdict_text(const Report& report, const Scene& scene, const Paint& paint);

// What comes after the compiler's own text.
std::string build_failure_text(const Scene& scene,
                               const Build& build,
                               std::string_view log,
                               std::string_view advice,
                               const Paint& paint);

}  // namespace moe::driver
