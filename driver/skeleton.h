// Skeletons: mine/mN_topic.cu is solutions/mN_topic.cu with the body of every region replaced.
//
//   // Which row of A belongs to this tile row?      the instruction: ordinary comments
//   // BEGIN m2.gather
//   const int row = ...;                             the body: not in the skeleton
//   // STUB: const int row = 0;                      code that stands in the skeleton instead
//   // END m2.gather
//
// becomes
//
//   // Which row of A belongs to this tile row?
//   // BEGIN m2.gather
//   // about 1 line
//   DRILL_TODO("m2.gather");
//   const int row = 0;
//   // END m2.gather
//
// "// BEGIN m2.x (given)" marks code that notes can cite and that stays as it is.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Region {
  std::string label;   // "m2.gather"
  bool given = false;  // citable code, no blank
  int begin_line = 0;  // 1-based lines of the two markers
  int end_line = 0;
  int code_lines = 0;              // neither blank nor comment
  std::string instruction;         // the comment block before BEGIN, as one line
  std::vector<std::string> stubs;  // lines without "// STUB: "
};

// A solution whose markers are wrong; what() says file, line and rule.
class MarkerError : public std::runtime_error {
 public:
  MarkerError(std::string_view file, int line, const std::string& rule);
};

// All regions of a solution, in order. `stage_id` ("m2") must be the prefix of every label.
// Throws MarkerError for: a nested, unclosed, unlabelled, twice used, empty or foreign region,
// an END without its BEGIN, a STUB outside a region or in a given one.
std::vector<Region> find_regions(std::string_view solution,
                                 std::string_view file,
                                 std::string_view stage_id);

// The text of the skeleton. Throws MarkerError.
std::string make_skeleton(std::string_view solution,
                          std::string_view file,
                          std::string_view stage_id);

// One region of a solution, as it stands in the learner's file.
struct Blank {
  std::string label;
  bool written = false;     // its DRILL_TODO is gone
  int line = 0;             // of its BEGIN marker; 0 when the learner removed it
  std::string instruction;  // from the solution
};

// Every blank of the solution (given regions left out), looked up in the learner's file, which
// may be edited in any way.
std::vector<Blank> find_blanks(const std::vector<Region>& regions, std::string_view mine);

// The line of "// BEGIN label" in any text, or 0.
int marker_line(std::string_view text, std::string_view label);

// Does this line of code (its comment left out) call DRILL_TODO with the label?
bool has_todo(std::string_view line, std::string_view label);

}  // namespace moe::driver
