#include "driver/grade/submissions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "driver/grade/usage.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSourceBytes = 1 << 20;
constexpr double kUnzipSeconds = 20;
constexpr int kSearchDepth = 3;  // SUBMISSION/repository-main/course/mine

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// Folders called `mine` that can be reached without following a link, and no deeper than a download
// of a repository puts them.
void collect_mine(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  if (is_folder(folder / "mine")) found.push_back(folder / "mine");
  if (depth == 0) return;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    const bool skipped = name == "mine" || name == "__MACOSX" || name == "build" || name[0] == '.';
    if (!skipped && is_folder(entry->path())) collect_mine(entry->path(), depth - 1, found);
  }
}

// Text of a regular file, never through a link; else why not.
std::string read_source(const fs::path& path, std::string& text) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno == ENOENT ? "it was not handed in" : "it cannot be read";
  struct stat about {};
  std::string problem;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    problem = "it is no regular file";
  } else if (static_cast<std::uint64_t>(about.st_size) > kSourceBytes) {
    problem = "it is larger than 1 MiB";
  } else {
    text.resize(static_cast<std::size_t>(about.st_size));
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t got = read(file, text.data() + done, text.size() - done);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    text.resize(done);
    if (text.find('\0') != std::string::npos) problem = "it is no text";
  }
  close(file);
  return problem;
}

// Unpacks only what may be graded. "" or why that was impossible.
std::string unzip(const fs::path& archive,
                  const fs::path& scratch,
                  const Confinement& confinement,
                  int worker) {
  confinement.hand_over(scratch, worker);
  Room room;
  room.readable = {archive};
  room.writable = {scratch};
  room.folder = scratch;
  driver::Command command;
  command.arguments =
      confinement.wrap({"unzip", "-q", "-o", "-P", "", archive.string(), "mine/*.cu", "*/mine/*.cu",
                        "-x", "__MACOSX/*"},
                       room, {std::uint64_t{1} << 30, kSourceBytes + 1, 10, 8}, worker);
  command.limit_s = kUnzipSeconds;
  const driver::Outcome outcome = driver::run_process(command);
  if (outcome.timed_out) return "the zip file takes too long to unpack";
  if (outcome.exit_code == 127) return "unzip is not installed (./setup.sh --grade)";
  constexpr int kNothingMatched = 11;
  if (outcome.exit_code == kNothingMatched) return "";
  // 1: warnings. Anything else may have unpacked some files: what is not there is "not handed in".
  if (outcome.exit_code > 1 && fs::is_empty(scratch)) return "the zip file is broken";
  return "";
}

std::string only_mine(const fs::path& root, std::vector<fs::path>& found) {
  collect_mine(root, kSearchDepth, found);
  if (found.size() <= 1) return "";
  // The one nearest to the top is meant, if it is alone there.
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    const auto depth = [](const fs::path& p) { return std::distance(p.begin(), p.end()); };
    return depth(a) != depth(b) ? depth(a) < depth(b) : a < b;
  });
  const auto depth = [](const fs::path& p) { return std::distance(p.begin(), p.end()); };
  if (depth(found[0]) < depth(found[1])) return "";
  return "two folders called mine: " + found[0].lexically_relative(root).string() + " and " +
         found[1].lexically_relative(root).string();
}

std::string first_word(const std::string& text) {
  return text.substr(0, text.find_first_of(" \t\r\n"));
}

bool is_commit(const std::string& text) {
  return text.size() >= 40 && text.size() <= 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string small_file(const fs::path& path) {
  std::string text;
  return read_source(path, text).empty() ? text : "";
}

}  // namespace

std::vector<Submission> find_submissions(const fs::path& folder) {
  if (!fs::is_directory(folder)) throw UsageError(folder.string() + " is no folder");
  std::vector<Submission> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.filename().string().front() == '.' || entry.is_symlink()) continue;
    if (entry.is_directory()) {
      found.push_back({path.filename(), fs::absolute(path)});
    } else if (entry.is_regular_file() && path.extension() == ".zip") {
      found.push_back({path.stem(), fs::absolute(path)});
    }
  }
  std::sort(found.begin(), found.end(), [](const Submission& a, const Submission& b) {
    return a.student != b.student ? a.student < b.student : a.origin < b.origin;
  });
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i].student != found[i - 1].student) continue;
    throw UsageError("two submissions have one name: " + found[i - 1].origin.string() + " and " +
                     found[i].origin.string());
  }
  if (found.empty()) {
    throw UsageError(folder.string() + " holds no submission: no folder, no .zip file");
  }
  return found;
}

HandIn read_submission(const Submission& submission,
                       const std::vector<std::string>& stems,
                       const fs::path& scratch,
                       const Confinement& confinement,
                       int worker) {
  HandIn result;
  fs::path root = submission.origin;
  std::string problem;
  if (!is_folder(root)) {
    problem = unzip(root, scratch, confinement, worker);
    root = scratch;
  } else {
    result.commit = commit_of(root);
  }
  std::vector<fs::path> mine;
  if (problem.empty()) problem = only_mine(root, mine);
  if (problem.empty() && mine.empty()) problem = "there is no folder mine/";
  for (const std::string& stem : stems) {
    std::string text;
    std::string why = problem;
    if (why.empty()) why = read_source(mine.front() / (stem + ".cu"), text);
    if (why.empty()) {
      result.sources[stem] = text;
    } else {
      result.problems[stem] = why;
    }
  }
  return result;
}

std::string commit_of(const fs::path& checkout) {
  const fs::path git = checkout / ".git";
  if (!is_folder(git)) return {};
  const std::string head = small_file(git / "HEAD");
  std::string commit = first_word(head);
  constexpr std::string_view kReference = "ref: ";
  if (head.rfind(kReference, 0) == 0) {
    const std::string name = first_word(head.substr(kReference.size()));
    if (name.rfind("refs/", 0) != 0 || name.find("..") != std::string::npos) return {};
    commit = first_word(small_file(git / name));
    for (const std::string& line : driver::split_lines(small_file(git / "packed-refs"))) {
      if (commit.empty() && line.size() > 41 && line.substr(line.find(' ') + 1) == name) {
        commit = first_word(line);
      }
    }
  }
  return is_commit(commit) ? commit : std::string();
}

}  // namespace moe::grade
