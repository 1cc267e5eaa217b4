// suite.h: how a case is run and judged. The test of a stage describes its cases and judges their
// outputs; everything that all stages share is here: the ways a case is run in, deaths, hangs,
// blanks, memory that must not change, the record, the exit code.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "buffers.h"
#include "child.h"
#include "diagnosis.h"
#include "look.h"
#include "random.h"
#include "report.h"
#include "verdict.h"

namespace moe::judge {

// Outputs of a call, by buffer index.
class Outputs {
 public:
  Outputs(const Call& call, const Images& images, const Answer& answer)
      : call_(call), images_(images), answer_(answer) {}
  template <class T>
  std::vector<T> values(size_t buffer) const {
    return values_of<T>(payload_after(call_, images_, answer_.after, buffer));
  }
  const protocol::Reply& reply() const { return answer_.reply; }
  // The bytes of all outputs, one behind the other.
  Bytes all() const {
    Bytes bytes;
    for (size_t i = 0; i < call_.buffers.size(); ++i) {
      if (call_.buffers[i].role != Role::kOutput) continue;
      const Bytes one = payload_after(call_, images_, answer_.after, i);
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    return bytes;
  }

 private:
  const Call& call_;
  const Images& images_;
  const Answer& answer_;
};

// One way to run a case.
struct Step {
  const char* name;  // for the record, such as "reversed thread order"
  protocol::Kind kind;
  protocol::ThreadOrder order;
  uint64_t data;  // which data of the case: steps with other numbers get other values
};

// What the test of a stage says of one case. `Problem` is anything made from a seed alone: make,
// call and judge see the same one. The expected output is computed in `judge`, after the child has
// answered.
template <class Problem>
struct StageCase {
  std::string name;   // group/name
  std::string shape;  // for people: "T=5 E=3 K=2"
  bool refused =
      false;  // the arguments break a rule: expect cudaErrorInvalidValue, nothing written
  bool gpu_only = false;  // too big for the emulator
  bool composed = false;  // of functions with cases of their own, which say more
  Verdict before;         // not a pass: something failed before the call could be made
  std::function<Problem(uint64_t seed)> make;
  std::function<Call(const Problem&)> call;
  std::function<Verdict(const Problem&, const Outputs&)> judge;
  // Optional: what must be the same whenever the case runs; else all outputs, byte by byte.
  std::function<Bytes(const Problem&, const Outputs&)> canonical;
  // Optional: names a mistake that shows as a death, a hang or in memory (outputs are null after a
  // death).
  std::function<Verdict(const Problem&, const Outputs*, Verdict)> explain;
  // Optional: how the value at a place of the output is formed (outputs are null after a death).
  std::function<std::vector<std::string>(const Problem&, const Outputs*, Place)> trace;
};

// One more try of a failed case, with one thing changed: what makes it pass names the kind of
// mistake.
using Attempt = std::function<Verdict(const Step& step, bool zero_workspace)>;

// A case that ran.
struct CaseResult {
  CaseRecord record;
  Verdict verdict;
};

// One number of a random case. Its lowest value is the simplest: what fails is shrunk towards it.
struct Gene {
  const char* name;
  int low;
  int high;
  bool rare = false;  // most cases have the lowest value: which rule is broken, for example
};

// A function under test, and how a case is made of genes.
struct FuzzTarget {
  std::string name;  // "gemm"; a case is called fuzz/gemm_4_2_3_...
  std::vector<Gene> genes;
  std::function<CaseResult(const std::string& case_name, const std::vector<int>& genes)> run;
};

// The state of a run of one test program.
class Suite {
 public:
  static Suite& get();

  // Parses what GoogleTest does not know; false (and a message) on bad usage.
  bool configure(int argc, char** argv, const char* stage, std::vector<std::string> regions);
  // Hello, all tests (or fuzzing), exit code of design.md.
  int run(const std::vector<FuzzTarget>& targets);

  bool full() const { return full_; }
  uint64_t seed() const { return seed_; }
  bool on_gpu() const { return backend_ == "cuda"; }
  // Why the stage can't run on this device and what would run instead; "" where it can.
  const std::string& device_refusal() const { return device_refusal_; }

  // The steps that a case takes: they depend on its name, not on its place in the run, so that it
  // gives the same verdict alone.
  std::vector<Step> steps(const std::string& case_name) const;
  uint64_t seed_of(const std::string& case_name, uint64_t data) const;
  // Runs one step of a case and makes the checks that need no knowledge of the stage.
  Verdict run_step(const Step& step,
                   const Call& call,
                   const Call* captured,
                   bool refused,
                   Answer& answer,
                   Images& images);
  // Asks a host helper of the stage for a number; -1 where the child died of it (`verdict` says
  // how).
  int64_t ask_value(uint32_t operation, const std::vector<int64_t>& integers, Verdict& verdict);
  // Names what only another try can show: a race, a dirty workspace, state kept between calls, work
  // done on the host.
  Verdict probe(const Step& failed, const Call& call, Verdict verdict, const Attempt& attempt);
  // Deaths and hangs so far no longer end the run.
  void forgive() { deaths_ = hangs_ = 0; }
  bool stopped() const { return no_hello_ || deaths_ >= kMaxDeaths || hangs_ >= kMaxHangs; }
  void record(const CaseRecord& record, const Verdict& verdict);
  Diagnosis& diagnosis() { return diagnosis_; }
  // What a passed case gave, as one number: runs with the same seed must agree.
  void clear_digest() { digest_ = 0; }
  void add_to_digest(const Bytes& bytes);
  uint64_t digest() const { return digest_; }
  // Meets the child and opens the record; called once, before the first of `cases` cases.
  void hello(int cases);

 private:
  static constexpr int kMaxDeaths = 5;
  static constexpr int kMaxHangs = 2;

  int exit_code() const;
  void check_device(const protocol::Reply& hello);
  int run_tests();
  int run_fuzz(const std::vector<FuzzTarget>& targets);
  int finish();
  std::vector<std::string> reached_todos(const protocol::Reply& reply) const;
  Verdict verdict_of_death(const Answer& answer);
  Verdict verdict_of_reply(const Step& step, const protocol::Reply& reply, bool refused);

  std::string stage_, runner_, side_ = "mine", backend_ = "cpu", case_, report_path_;
  std::vector<std::string> regions_;
  bool full_ = false;
  double fuzz_seconds_ = 0.0;
  uint64_t seed_ = 1;
  int case_limit_ms_ = 10'000;  // raised where a memory checker slows the child
  int hello_limit_ms_ = 30'000;
  std::string capability_;  // "9.0" where only such a GPU runs the stage
  std::string device_refusal_;
  std::unique_ptr<Child> child_;
  std::unique_ptr<Report> report_;
  Diagnosis diagnosis_;
  uint64_t digest_ = 0;
  int counts_[7] = {};
  int deaths_ = 0;
  int hangs_ = 0;
  bool no_hello_ = false;
};

// Reports a verdict to GoogleTest in its own terms.
void tell_googletest(const Verdict& verdict);

// Runs one step of a case: child, common checks, judge.
template <class Problem>
Verdict run_step(const StageCase<Problem>& stage_case, const Step& step, bool zero_workspace) {
  Suite& suite = Suite::get();
  const auto call_of = [&](const Problem& problem) {
    Call call = stage_case.call(problem);
    for (HostBuffer& buffer : call.buffers) {
      if (zero_workspace && buffer.role == Role::kWorkspace) {
        std::fill(buffer.payload.begin(), buffer.payload.end(), static_cast<unsigned char>(0));
      }
    }
    return call;
  };
  const Problem problem = stage_case.make(suite.seed_of(stage_case.name, step.data));
  const Call call = call_of(problem);
  Call captured;
  const bool replay = step.kind == protocol::Kind::kReplay;
  if (replay) captured = call_of(stage_case.make(suite.seed_of(stage_case.name, step.data + 1)));
  Answer answer;
  Images images;
  Verdict verdict =
      suite.run_step(step, call, replay ? &captured : nullptr, stage_case.refused, answer, images);
  const bool replied = answer.after.size() == images.bytes.size();
  const Outputs outputs(call, images, answer);
  if (verdict.pass() && !stage_case.refused) verdict = stage_case.judge(problem, outputs);
  if (verdict.pass() && replied) {
    suite.add_to_digest(stage_case.canonical && !stage_case.refused
                            ? stage_case.canonical(problem, outputs)
                            : outputs.all());
  }
  const bool failed = verdict.state == State::kWrong || verdict.state == State::kCrash ||
                      verdict.state == State::kHang;
  const bool nothing_written = replied && answer.after == images.bytes;
  if (failed && stage_case.explain) {
    verdict = stage_case.explain(problem, replied ? &outputs : nullptr, verdict);
  }
  verdict.nothing_written = failed && nothing_written;
  if (look_options().trace && stage_case.trace && !stage_case.refused) {
    const bool complete = replied && verdict.state != State::kTodo;
    note_trace(stage_case.trace(problem, complete ? &outputs : nullptr, look_options().place));
  }
  return verdict;
}

// Runs one case, in all its ways until one fails.
template <class Problem>
CaseResult judge_case(const StageCase<Problem>& stage_case) {
  Suite& suite = Suite::get();
  CaseRecord record = {stage_case.name, stage_case.shape, "", suite.seed(), 0.0};
  record.composed = stage_case.composed;
  Verdict verdict = stage_case.before;
  if (suite.stopped()) {
    verdict.state = State::kNotRun;
    verdict.sentence = "not run after several crashes or hangs";
  } else if (!suite.device_refusal().empty()) {
    verdict.state = State::kSkip;
    verdict.sentence = suite.device_refusal();
  } else if (stage_case.gpu_only && !suite.on_gpu()) {
    verdict.state = State::kSkip;
    verdict.sentence = "needs the memory and speed of a GPU";
  }
  suite.clear_digest();
  (void)take_look();  // what the tries of an earlier case left
  const auto begin = std::chrono::steady_clock::now();
  for (const Step& step : suite.steps(stage_case.name)) {
    if (!verdict.pass()) break;
    verdict = run_step(stage_case, step, false);
    record.look = take_look();
    if (verdict.pass()) continue;
    record.step = step.name;
    const Call call = stage_case.call(stage_case.make(suite.seed_of(stage_case.name, step.data)));
    verdict = suite.probe(step, call, verdict, [&](const Step& other, bool zero_workspace) {
      return run_step(stage_case, other, zero_workspace);
    });
  }
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  record.digest = suite.digest();
  return {record, verdict};
}

// The whole life of one case; call it as the body of a TEST_P.
template <class Problem>
void run_case(const StageCase<Problem>& stage_case) {
  const CaseResult result = judge_case(stage_case);
  Suite::get().record(result.record, result.verdict);
  tell_googletest(result.verdict);
}

// The same for a case without a call: `check` asks host helpers of the stage (Suite::ask_value).
void run_check(const std::string& name,
               const std::string& shape,
               const std::function<Verdict()>& check);

// main() of a stage's test program. `make_tables` calls the functions that make its bug models.
int stage_main(int argc,
               char** argv,
               const char* stage,
               std::vector<std::string> regions,
               const std::vector<FuzzTarget>& targets = {},
               const std::function<void()>& make_tables = {});

}  // namespace moe::judge
