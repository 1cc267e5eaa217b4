#include "driver/grade/class_run.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "driver/process.h"
#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kProgressEvery = std::chrono::milliseconds(200);

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// The record of an earlier run, if it is about exactly this.
std::optional<StageResult> known_result(const fs::path& file, const std::string& key) {
  const std::string text = driver::read_file(file);
  if (text.empty()) return std::nullopt;
  try {
    StageResult result = stage_from_text(text);
    // A fault is tried again.
    if (result.key == key && result.mark != Mark::kFault) return result;
  } catch (const std::exception&) {
    return std::nullopt;  // damaged, or of another version
  }
  return std::nullopt;
}

}  // namespace

std::string file_name_of(const std::string& student) {
  std::string name = student;
  for (char& c : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!plain || static_cast<unsigned char>(c) >= 0x80) c = '_';
  }
  if (name == student && name.size() <= 100) return name;
  return name.substr(0, 80) + "-" + hex(driver::hash_of(student)).substr(0, 8);
}

StageResult ClassRun::grade_stage(const Recipe& recipe,
                                  const std::string& source,
                                  const fs::path& folder,
                                  int worker) {
  StageResult result;
  const BuiltRunner built = workshop_.build(recipe, source, folder, worker);
  if (built.mark == Mark::kPass) {
    result = examiner_.examine(*recipe.stage, built.runner, "mine",
                               prepared_.expected.at(recipe.stage->stem), folder, worker);
    if (prepared_.cost_gate != nullptr) {
      prepared_.cost_gate->take(*recipe.stage, source, folder, worker, result);
    }
  } else {
    result.mark = built.mark;
    result.sentence = built.sentence;
    result.text = built.text;
  }
  result.build_seconds = built.seconds;
  return result;
}

void ClassRun::finish_stage(bool reused) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++progress_.done;
  progress_.reused += reused ? 1 : 0;
  changed_.notify_all();
}

void ClassRun::grade_student(std::size_t index, const Submission& submission, int worker) {
  const std::string name = file_name_of(submission.student);
  const fs::path work = out_ / "work" / std::to_string(worker);
  const fs::path state = out_ / "state" / name;
  fs::remove_all(work);
  fs::create_directories(work / "zip");
  fs::create_directories(state);
  std::vector<std::string> stems;
  for (const Recipe& recipe : prepared_.recipes) stems.emplace_back(recipe.stage->stem);
  const HandIn hand_in = read_submission(submission, stems, work / "zip", confinement_, worker);

  StudentResult result;
  result.student = submission.student;
  result.commit = hand_in.commit;
  for (const Recipe& recipe : prepared_.recipes) {
    const std::string stem = recipe.stage->stem;
    const auto source = hand_in.sources.find(stem);
    if (source == hand_in.sources.end()) {
      result.stages[stem].mark = Mark::kMissing;
      result.stages[stem].sentence = "mine/" + stem + ".cu: " + hand_in.problems.at(stem);
      finish_stage(false);
      continue;
    }
    const std::string key = hex(driver::hash_of(prepared_.keys.at(stem) + source->second));
    const fs::path file = state / (stem + ".json");
    std::optional<StageResult> known = known_result(file, key);
    const bool reused = known.has_value();
    if (!reused) {
      const fs::path folder = work / stem;
      fs::create_directories(folder);
      known = grade_stage(recipe, source->second, folder, worker);
      known->key = key;
      write_durably(file, to_text(*known));
    }
    result.stages[stem] = *known;
    finish_stage(reused);
  }
  fs::remove_all(work);
  const std::lock_guard<std::mutex> lock(mutex_);
  results_[index] = result;
  finished_.push_back(index);
  changed_.notify_all();
}

void ClassRun::work(const std::vector<Submission>& submissions, int worker) {
  const auto stop = [&](int signal, const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = interrupted_ != 0 ? interrupted_ : signal;
    broken_ = broken_.empty() ? what : broken_;
    next_ = submissions.size();
  };
  try {
    for (;;) {
      std::size_t index = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (next_ == submissions.size()) break;
        index = next_++;
      }
      grade_student(index, submissions[index], worker);
    }
  } catch (const driver::Interrupted& interrupted) {
    stop(interrupted.signal, "");
  } catch (const std::exception& error) {
    stop(0, error.what());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  --working_;
  changed_.notify_all();
}

std::vector<StudentResult> ClassRun::run(
    const std::vector<Submission>& submissions,
    int jobs,
    const std::function<void(const Progress&)>& on_progress,
    const std::function<void(const StudentResult&)>& on_student) {
  const Clock::time_point start = Clock::now();
  results_.assign(submissions.size(), {});
  progress_.all = submissions.size() * prepared_.recipes.size();
  working_ = jobs;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < jobs; ++worker) {
    workers.emplace_back([this, &submissions, worker] { work(submissions, worker); });
  }
  std::unique_lock<std::mutex> lock(mutex_);
  while (working_ > 0 || !finished_.empty()) {
    if (finished_.empty()) changed_.wait_for(lock, kProgressEvery);
    progress_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const Progress now = progress_;
    std::vector<StudentResult> told;
    for (const std::size_t index : finished_) told.push_back(results_[index]);
    finished_.clear();
    lock.unlock();
    for (const StudentResult& one : told) on_student(one);
    on_progress(now);
    lock.lock();
  }
  lock.unlock();
  for (std::thread& worker : workers) worker.join();
  if (interrupted_ != 0) throw driver::Interrupted{interrupted_};
  if (!broken_.empty()) throw std::runtime_error(broken_);
  return results_;
}

}  // namespace moe::grade
