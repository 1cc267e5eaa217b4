// What `drill check` found: one mistake in one place, however often it happened and whoever saw it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "driver/terminal.h"
#include "driver/transcript.h"

namespace moe::driver {

struct Finding {
  std::string kind;                  // "race", also what `drill explain` takes
  std::string sentence;              // "two threads of a block use byte 16 of ..."
  std::vector<std::string> details;  // who and where, a line each
  std::vector<std::string> places;   // "mine/m2_grouped_gemm.cu:140", those of the details
  std::vector<std::string> cases;    // in which it was seen
  std::vector<std::string> tools;    // and by which
};

// Of a report of the emulator whose lines are resolved (fault.h): "kind: sentence" and indented
// lines, once or more.
std::vector<Finding> findings_of_fault(std::string_view fault);

// Adds it, or only its case and tool where the same is known of the same lines.
void add_finding(std::vector<Finding>& findings, const Finding& finding);

// The region of the stage's file that the line lies in, "m2.store", or "".
std::string region_at(std::string_view source, int line);

// All of them, numbered. `note` is the text of the stage's note, for sections that name regions.
std::string findings_text(const std::vector<Finding>& findings,
                          const Scene& scene,
                          std::string_view note,
                          const Paint& paint);

}  // namespace moe::driver
