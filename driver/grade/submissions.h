// What was handed in: folders, zip files and git checkouts with mine/*.cu in them. Of each, only
// the text of those files is taken; nothing of a submission is ever run or built where it lies.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "driver/grade/confine.h"

namespace moe::grade {

struct Submission {
  std::string student;  // name of the folder, or of the zip file without its ending
  std::filesystem::path origin;
};

// The files of a submission; every stage has an entry in one of the two maps.
struct HandIn {
  std::string commit;                           // of a git checkout
  std::map<std::string, std::string> sources;   // by stem: text of mine/STEM.cu
  std::map<std::string, std::string> problems;  // by stem: why there is none
};

// Folders and zip files right below `folder`, in the order of their names. Throws UsageError where
// two would have one name, or where there is nothing.
std::vector<Submission> find_submissions(const std::filesystem::path& folder);

// Reads the files of the stages. `scratch` is an empty folder for what a zip file holds.
HandIn read_submission(const Submission& submission,
                       const std::vector<std::string>& stems,
                       const std::filesystem::path& scratch,
                       const Confinement& confinement,
                       int worker);

// The commit that a checkout stands at, or "". Reads files only: git itself would run what a
// repository's configuration says.
std::string commit_of(const std::filesystem::path& checkout);

}  // namespace moe::grade
