// A copy of the course in a folder of its own, in which tests may edit mine/ and run `drill`.
#pragma once

#include <filesystem>
#include <string>

namespace moe::driver {

class CourseCopy {
 public:
  // Brings the copy up to date: files that differ are copied, files that are gone are removed, the
  // build trees of the copy stay, so that only the first run compiles everything.
  CourseCopy(std::filesystem::path source, std::filesystem::path copy);

  std::string read(const std::string& file) const;
  void write(const std::string& file, const std::string& text) const;

  // What `drill ARGUMENTS` prints, with all that varies between runs and machines replaced: times,
  // seeds, line numbers, the folder; without a compiler's excerpts and the notes of a first build.
  struct Transcript {
    std::string text;
    int exit_code = 0;
  };
  Transcript run(const std::string& arguments) const;

  // The same for any shell command, run in the folder of the copy; as it is, nothing replaced.
  Transcript run_shell(const std::string& script) const;

  // A file with these contents that looks older than anything built, as a restored backup does.
  void write_old(const std::string& file, const std::string& text) const;

 private:
  std::filesystem::path source_;
  std::filesystem::path copy_;
};

// The replacements alone.
std::string normalised(const std::string& text, const std::string& root);

}  // namespace moe::driver
