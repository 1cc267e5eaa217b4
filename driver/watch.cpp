// `drill watch mN`: runs the stage again whenever its file is saved. The content is looked at, not
// what the system tells about files: that fails on network drives and under WSL.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "driver/journal.h"
#include "driver/last_run.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/state.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr int kPollMs = 300;
constexpr const char* kKeys = "keys   r run  h hint  n next stage  b bench  q quit";

// Keys without Enter, while this lives; nothing at all where stdin is no terminal.
class Keyboard {
 public:
  Keyboard() {
    active_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
    set(true);
  }
  ~Keyboard() { set(false); }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  bool active() const { return active_; }

  // Single keys, or whole lines with echo as everywhere else.
  void set(bool single) const {
    if (!active_) return;
    termios mode = before_;
    if (single) {
      mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      mode.c_cc[VMIN] = 0;
      mode.c_cc[VTIME] = 0;
    }
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }

  // Waits at most that long; 0 when no key came, 'q' when the terminal is gone.
  char wait(int milliseconds) const {
    if (!active_) {
      poll(nullptr, 0, milliseconds);
      return 0;
    }
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, milliseconds) <= 0) return 0;
    char key = 0;
    const ssize_t count = read(STDIN_FILENO, &key, 1);
    return count == 1 ? key : 'q';
  }

 private:
  bool active_ = false;
  termios before_{};
};

class Watch {
 public:
  Watch(const Course& course, const WatchOptions& options)
      : course_(course), options_(options), stage_(find_stage(options.stage)) {}

  int run();

 private:
  std::uint64_t hash() const { return hash_of(read_file(course_.mine(*stage_))); }
  void say_start() const;
  void say_waiting() const;
  void test();
  bool failing_case_still_fails();
  void handle(char key);

  const Course& course_;
  const WatchOptions& options_;
  const Stage* stage_;
  Keyboard keyboard_;
  std::uint64_t tested_ = 0;  // the hash of the file that was tested last
  bool quit_ = false;
  int last_code_ = 0;
};

void Watch::say_start() const {
  const std::string file = source_name(*stage_, "mine");
  say("watch  " + file + (keyboard_.active() ? "   not noticing saves? press r\n" : "\n"));
  say(keyboard_.active() ? std::string(kKeys) + "\n"
                         : "       no keys here (stdin is no terminal); Ctrl-C ends it\n");
}

void Watch::say_waiting() const {
  say("\nwaiting for " + source_name(*stage_, "mine") + " to change ...\n");
}

RunOptions run_options(const WatchOptions& options, const Stage& stage) {
  RunOptions run;
  run.stage = stage.id;
  run.cpu = options.cpu;
  run.gpu = options.gpu;
  run.no_time = true;  // times are taken on request only
  return run;
}

// Runs the case that failed last, alone: while it fails, the others can wait.
bool Watch::failing_case_still_fails() {
  const auto last = last_run(course_, *stage_);
  const CaseRecord* failure = last ? last->failure() : nullptr;
  if (failure == nullptr) return false;
  RunOptions run = run_options(options_, *stage_);
  run.case_name = failure->name;
  run.seed = failure->seed;
  last_code_ = run_stage(course_, run);
  if (last_code_ == 0) say("\n" + run.case_name + " passes now; all cases:\n");
  return last_code_ != 0;
}

void Watch::test() {
  tested_ = hash();
  if (failing_case_still_fails()) return;
  last_code_ = run_stage(course_, run_options(options_, *stage_));
}

void Watch::handle(char key) {
  const std::string id = stage_->id;
  switch (key) {
    case 'r':
      tested_ = hash();
      last_code_ = run_stage(course_, run_options(options_, *stage_));
      break;
    case 'h':
      show_hint(course_, {id, "", false});
      break;
    case 'n': {
      const Stage* next = stage_ + 1;
      if (next == std::end(kStages)) {
        say("this is the last stage\n");
        return;
      }
      stage_ = next;
      say_start();
      test();
      break;
    }
    case 'b': {
      BenchOptions bench;
      bench.stage = id;
      run_bench(course_, bench);
      break;
    }
    case 'q':
      quit_ = true;
      return;
    default:
      say(std::string(kKeys) + "\n");
      return;
  }
  say_waiting();
}

int Watch::run() {
  say_start();
  test();
  say_waiting();
  std::uint64_t seen = tested_;
  while (!quit_) {
    const char key = keyboard_.wait(kPollMs);
    throw_if_interrupted();
    if (key != 0) handle(key);
    const std::uint64_t now = hash();
    const bool settled = now == seen;  // an editor may still be writing
    seen = now;
    if (now == tested_ || !settled) continue;
    say("\n");
    test();
    say_waiting();
  }
  return last_code_;
}

}  // namespace

int watch_stage(const Course& course, const WatchOptions& options) {
  WatchOptions with_stage = options;
  if (with_stage.stage.empty()) {  // the one that `drill` names next
    for (const Stage& stage : kStages) {
      if (with_stage.stage.empty() && !standing_of(course, stage).passed) {
        with_stage.stage = stage.id;
      }
    }
    if (with_stage.stage.empty()) with_stage.stage = kStages[0].id;
  }
  return Watch(course, with_stage).run();
}

}  // namespace moe::driver
