// The parts of a note that are generated, between <!-- BEGIN KIND ARGUMENTS --> and <!-- END KIND
// -->:
//   tiny m2              the tables of the tiny example, from the oracles
//   regions m2           the stage's regions, their size and where the note speaks of them
//   measured m2          the stage's lines of content/results/README.md, else of ladder.md there,
//                        else that there are none yet
//   measured table NAME  the table of that README.md whose first heading is NAME
// DRILL_UPDATE_CONTENT=1 makes content_test write them.
#pragma once

#include <filesystem>
#include <string>

#include "driver/book/markdown.h"
#include "driver/course.h"

namespace moe::content {

struct NoteFile {
  std::string name;  // "content/zh/m1_align.md", below the root
  std::string text;
  driver::Page page;
  bool chinese() const { return name.find("/zh/") != std::string::npos; }
};

// What the block must hold, or "" when its kind is not generated here.
// Throws std::runtime_error when the arguments name nothing.
std::string generated_body(const driver::Course& course,
                           const NoteFile& note,
                           const driver::Block& block);

}  // namespace moe::content
