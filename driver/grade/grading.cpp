#include "driver/grade/grading.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "driver/build.h"
#include "driver/grade/class_run.h"
#include "driver/grade/prepare.h"
#include "driver/grade/reports.h"
#include "driver/grade/usage.h"
#include "driver/process.h"
#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using driver::counted;
using driver::name_list;
using driver::padded;
using driver::say;
using driver::wrapped;

constexpr const char* kSchemeName = "grading.toml";

// One grader at a time in a folder of results.
class OutLock {
 public:
  explicit OutLock(const fs::path& out) {
    fs::create_directories(out);
    descriptor_ = open((out / ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw UsageError("cannot write to " + out.string());
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      throw UsageError("another drill grade is writing to " + out.string());
    }
  }
  ~OutLock() { close(descriptor_); }
  OutLock(const OutLock&) = delete;
  OutLock& operator=(const OutLock&) = delete;

 private:
  int descriptor_ = -1;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    if (end > start) items.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return items;
}

std::vector<const Stage*> stages_of(const std::string& list) {
  std::vector<const Stage*> chosen;
  for (const Stage& stage : kStages) {
    if (list.empty()) chosen.push_back(&stage);
  }
  for (const std::string& name : split_list(list)) {
    const Stage* stage = driver::find_stage(name);
    if (stage == nullptr) throw UsageError("there is no stage " + name);
    if (std::count(chosen.begin(), chosen.end(), stage) == 0) chosen.push_back(stage);
  }
  std::sort(chosen.begin(), chosen.end());  // in their order, whatever the list says
  return chosen;
}

std::vector<std::string> formats_of(const std::string& list) {
  std::vector<std::string> known(std::begin(kFormats), std::end(kFormats));
  if (list.empty()) return known;
  std::vector<std::string> chosen = split_list(list);
  for (const std::string& format : chosen) {
    if (std::count(known.begin(), known.end(), format) > 0) continue;
    const std::string near = driver::nearest(format, known, 3);
    throw UsageError("there is no format " + format + (near.empty() ? "" : "; " + near + "?"));
  }
  return chosen;
}

int write_scheme(const GradeOptions& options, const std::vector<const Stage*>& stages) {
  const fs::path file = options.scheme.empty() ? kSchemeName : options.scheme;
  if (fs::exists(file)) throw UsageError(file.string() + " is there already");
  std::ofstream(file, std::ios::binary) << scheme_text(stages);
  if (!fs::exists(file)) throw UsageError("cannot write " + file.string());
  say("wrote  " + file.string() + "; every line in it may be changed or left out\n");
  return 0;
}

Scheme scheme_of(const GradeOptions& options) {
  if (!options.scheme.empty()) return read_scheme(options.scheme);
  return fs::exists(kSchemeName) ? read_scheme(kSchemeName)
                                 : parse_scheme("version = 1", "the defaults");
}

std::string minutes_text(double seconds) {
  const auto rounded = static_cast<std::size_t>(std::max(1.0, std::ceil(seconds)));
  if (rounded < 90) return std::to_string(rounded) + " s";
  return std::to_string((rounded + 59) / 60) + " min";
}

class Grading {
 public:
  Grading(const driver::Course& course, const GradeOptions& options)
      : course_(course), options_(options), paint_(driver::Paint::for_stdout()) {}

  int run();

 private:
  void choose_wall();
  void grade(const std::vector<Submission>& submissions,
             const driver::Backend& backend,
             std::optional<std::uint64_t> secret);
  void say_progress(const Progress& progress);
  void say_student(const StudentResult& student);
  void say_end(const std::vector<std::string>& written);

  const driver::Course& course_;
  const GradeOptions& options_;
  driver::Paint paint_;
  driver::StatusLine status_;
  fs::path out_;
  ClassReport report_;
  Confinement confinement_{Wall::kNone};
  std::size_t name_width_ = 8;
};

void Grading::choose_wall() {
  confinement_ = find_confinement(out_ / "work");
  report_.wall = confinement_.word();
  say(wrapped("wall   ", confinement_.phrase()));
  if (confinement_.guards_verdicts() || options_.trust) return;
  throw UsageError(
      "bubblewrap does not work here, so a hostile submission could change what the grader writes. "
      "Install it (./setup.sh --grade), or say --trust if you trust every submission");
}

void Grading::say_progress(const Progress& progress) {
  const std::size_t fresh = progress.done - progress.reused;
  const std::size_t open = progress.all - progress.done;
  constexpr std::size_t kWidth = 24;
  const std::size_t filled = progress.done * kWidth / std::max<std::size_t>(progress.all, 1);
  std::string line = "[" + std::string(filled, '=') + std::string(kWidth - filled, ' ') + "]  " +
                     std::to_string(progress.done) + " of " + std::to_string(progress.all) +
                     " stages";
  if (fresh > 0 && open > 0) {
    const double each = progress.seconds / static_cast<double>(fresh);
    line += "  about " + minutes_text(each * static_cast<double>(open)) + " left";
  }
  status_.show(line);
}

void Grading::say_student(const StudentResult& student) {
  status_.clear();
  std::string line = padded(clean_text(student.student).substr(0, 40), name_width_);
  for (const Stage* stage : report_.stages) {
    const StageResult& result = student.stages.at(stage->stem);
    const StageScore score = report_.score(student, *stage);
    const std::string word = word_of(result.mark);
    const std::string cell = word + " " + (score.scored ? points_text(score.earned) : "?");
    line += "  " + std::string(stage->id) + " ";
    line += result.mark == Mark::kPass ? paint_.good(padded(cell, 13)) : padded(cell, 13);
  }
  say(line + "\n");
}

void Grading::say_end(const std::vector<std::string>& written) {
  status_.clear();
  std::map<std::string, std::size_t> marks;
  std::vector<std::string> flaky;
  std::vector<std::string> faults;
  for (const StudentResult& student : report_.students) {
    for (const Stage* stage : report_.stages) {
      const StageResult& result = student.stages.at(stage->stem);
      ++marks[word_of(result.mark)];
      const std::string name = student.student + " " + stage->id;
      if (result.flaky) flaky.push_back(name);
      if (result.mark == Mark::kFault) faults.push_back(name + " (" + result.sentence + ")");
    }
  }
  std::string counts;
  for (const auto& [mark, count] : marks) {
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + mark;
  }
  say("done   " + counted(report_.students.size(), "submission") + ": " + counts + "\n");
  if (!flaky.empty())
    say(wrapped("flaky  ", "passed only at a second try: " + name_list(flaky, 400)));
  if (!faults.empty()) {
    say(wrapped("FAULT  ", "not scored, run the command again: " + name_list(faults, 400)));
  }
  for (const std::string& name : written) say("       " + (out_ / name).string() + "\n");
}

int Grading::run() {
  report_.stages = stages_of(options_.stages);
  if (options_.init) return write_scheme(options_, report_.stages);
  if (options_.submissions.empty() || options_.out.empty()) {
    throw UsageError("say --submissions FOLDER and --out FOLDER");
  }
  const std::vector<std::string> formats = formats_of(options_.formats);
  report_.scheme = scheme_of(options_);
  if (options_.quick) report_.scheme.full = false;
  const std::optional<std::uint64_t> secret = read_secret(options_);
  const std::vector<Submission> submissions = find_submissions(options_.submissions);
  for (const Submission& one : submissions) {
    name_width_ = std::max(name_width_, std::min<std::size_t>(one.student.size(), 40));
  }
  const driver::Backend backend =
      driver::choose_backend(options_.gpu ? driver::Wish::kGpu : driver::Wish::kCpu);
  if (options_.gpu && !backend.cuda) throw UsageError("--gpu: " + backend.refusal);
  out_ = fs::absolute(options_.out).lexically_normal();
  const OutLock lock(out_);
  fs::remove_all(out_ / "work");  // of a run that was killed
  fs::create_directories(out_ / "work");
  report_.set = report_.scheme.full ? "full" : "quick";
  report_.device = backend.cuda ? "GPU" : "emulator";
  report_.secret = secret.has_value();
  report_.timed = backend.cuda;
  say("grade  " + counted(submissions.size(), "submission") + ", " + report_.set + " set, " +
      report_.device + (secret ? ", hidden seed and cases" : "") + "\n");
  choose_wall();
  grade(submissions, backend, secret);
  const fs::path schema = course_.root / "driver" / "grade" / "results.v1.schema.json";
  say_end(write_reports(report_, formats, schema, out_));
  return 0;
}

void Grading::grade(const std::vector<Submission>& submissions,
                    const driver::Backend& backend,
                    std::optional<std::uint64_t> secret) {
  Examiner examiner(course_, backend, report_.scheme, confinement_, secret);
  Preparation preparation(course_, backend, report_.scheme, confinement_, out_);
  const Workshop workshop(confinement_, preparation.clean_tree(), report_.scheme.build);
  const Prepared prepared =
      preparation.run(report_.stages, workshop, examiner, secret.value_or(0),
                      [this](const std::string& text) { status_.show(text); });
  status_.clear();
  report_.expected = prepared.expected;
  report_.run_id = preparation.run_id();
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  ClassRun class_run(confinement_, workshop, examiner, prepared, out_);
  try {
    report_.students = class_run.run(
        submissions, options_.jobs > 0 ? options_.jobs : cores,
        [this](const Progress& progress) { say_progress(progress); },
        [this](const StudentResult& student) { say_student(student); });
  } catch (const driver::Interrupted&) {
    status_.clear();
    say("\nWhat is finished is kept: the same command goes on from here.\n");
    throw;
  }
  std::error_code ignored;
  fs::remove_all(out_ / "work", ignored);
}

}  // namespace

int run_grading(const driver::Course& course, const GradeOptions& options) {
  try {
    return Grading(course, options).run();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s", wrapped("drill grade: ", error.what()).c_str());
    return static_cast<int>(driver::Verdict::kUsage);
  }
}

}  // namespace moe::grade
