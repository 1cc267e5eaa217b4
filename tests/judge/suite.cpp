#include "suite.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "case_size.h"
#include "driver/capability.h"
#include "fuzz.h"
#include "hidden.h"
#include "mistakes.h"

namespace moe::judge {
namespace {

// Says hello once GoogleTest knows how many cases will run.
class StartListener : public testing::EmptyTestEventListener {
  void OnTestIterationStart(const testing::UnitTest& unit, int /*iteration*/) override {
    Suite::get().hello(unit.test_to_run_count());
  }
};

}  // namespace

Suite& Suite::get() {
  static Suite suite;
  return suite;
}

bool Suite::configure(int argc, char** argv, const char* stage, std::vector<std::string> regions) {
  stage_ = stage;
  for (const Stage& one : kStages) {
    if (stage_ == one.stem) capability_ = one.capability;
  }
  if (secret() != 0) seed_ = secret();
  regions_ = std::move(regions);
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--full") {
      full_ = true;
      continue;
    }
    if (option == "--map") {
      look_options().map = true;
      continue;
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "%s: unknown option, or no value behind it: %s\n", argv[0],
                   option.c_str());
      return false;
    }
    const std::string value = argv[++i];
    if (option == "--runner") {
      runner_ = value;
    } else if (option == "--side") {
      side_ = value;
    } else if (option == "--backend") {
      backend_ = value;
    } else if (option == "--report") {
      report_path_ = value;
    } else if (option == "--seed") {
      seed_ = std::strtoull(value.c_str(), nullptr, 0);
    } else if (option == "--case") {
      case_ = value;
    } else if (option == "--requires-capability") {
      capability_ = value;
    } else if (option == "--fuzz") {
      fuzz_seconds_ = std::atof(value.c_str());
    } else if (option == "--shuffle") {  // the order of cases
      testing::GTEST_FLAG(shuffle) = true;
      testing::GTEST_FLAG(random_seed) = std::atoi(value.c_str());
    } else if (option == "--print") {
      look_options().trace = parse_place(value, look_options().place);
    } else if (option == "--largest-kib") {
      set_largest_case(std::strtoull(value.c_str(), nullptr, 0) * 1024);
    } else if (option == "--case-limit-ms") {
      case_limit_ms_ = std::atoi(value.c_str());
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], option.c_str());
      return false;
    }
  }
  // Random cases are rare enough to run in every way.
  full_ = full_ || fuzz_seconds_ > 0.0 || case_.rfind("fuzz/", 0) == 0;
  if (runner_.empty()) std::fprintf(stderr, "%s: --runner PATH is missing\n", argv[0]);
  return !runner_.empty();
}

std::vector<Step> Suite::steps(const std::string& case_name) const {
  using protocol::Kind;
  using protocol::ThreadOrder;
  const Step forward = {"forward thread order", Kind::kCall, ThreadOrder::kForward, 0};
  const Step reversed = {"reversed thread order", Kind::kCall, ThreadOrder::kReverse, 0};
  if (!full_) return {mix(0, case_name) % 2 == 0 ? forward : reversed};
  // The second call has other data, in the same process: what was kept from the first would show.
  return {
      forward,
      {"reversed thread order, second call with other data", Kind::kCall, ThreadOrder::kReverse, 1},
      {"captured in a graph and replayed with other data", Kind::kReplay, ThreadOrder::kForward,
       2}};
}

void Suite::add_to_digest(const Bytes& bytes) {
  for (const unsigned char byte : bytes) digest_ = (digest_ ^ byte) * 1099511628211u;
  digest_ = mix(digest_);
}

uint64_t Suite::seed_of(const std::string& case_name, uint64_t data) const {
  return mix(mix(seed_, case_name) + data);
}

void Suite::record(const CaseRecord& record, const Verdict& verdict) {
  ++counts_[static_cast<int>(verdict.state)];
  report_->output(child_->take_output(), child_->output_truncated());
  report_->add(record, verdict);
  const bool failed = verdict.state == State::kWrong || verdict.state == State::kCrash ||
                      verdict.state == State::kHang;
  if (failed) diagnosis_.add(record.name, verdict, record.composed);
}

void Suite::hello(int cases) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kHello;
  const Answer answer =
      child_->ask(request, nullptr, nullptr, std::max(hello_limit_ms_, case_limit_ms_));
  report_->start({stage_, side_, backend_, text_in(answer.reply.device), full_ ? "full" : "quick",
                  seed_, cases});
  if (answer.kind == Answer::Kind::kReplied) {
    check_device(answer.reply);
    return;
  }
  // A child that can't even say hello will not do better at the next case.
  const Verdict verdict = verdict_of_death(answer);
  record({"start", "", "before the first case", seed_, 0.0}, verdict);
  no_hello_ = true;
}

void Suite::check_device(const protocol::Reply& hello) {
  std::string command = stage_;  // "layer"
  for (const Stage& one : kStages) {
    if (stage_ == one.stem) command = one.id;
  }
  device_refusal_ = refuse_device(
      capability_, text_in(hello.device),
      std::to_string(hello.capability_major) + "." + std::to_string(hello.capability_minor),
      "drill " + command);
}

// Of several states the first in this order counts.
int Suite::exit_code() const {
  const auto count = [&](State state) { return counts_[static_cast<int>(state)]; };
  if (count(State::kHang) > 0) return 6;
  if (count(State::kCrash) > 0) return 5;
  if (count(State::kWrong) > 0) return 1;
  if (count(State::kTodo) > 0) return 3;
  if (count(State::kPass) == 0) return 77;
  return 0;
}

int Suite::run(const std::vector<FuzzTarget>& targets) {
  child_ = std::make_unique<Child>(runner_, case_limit_ms_ > 10'000 ? 20'000 : 200);
  report_ = std::make_unique<Report>(report_path_);
  if (access(runner_.c_str(), X_OK) != 0) {
    std::fprintf(stderr, "no runner at %s\n", runner_.c_str());
    return 70;
  }
  const bool random_cases = fuzz_seconds_ > 0.0 || case_.rfind("fuzz/", 0) == 0;
  return random_cases ? run_fuzz(targets) : run_tests();
}

int Suite::run_tests() {
  if (!case_.empty()) {
    const size_t slash = case_.find('/');
    const std::string filter = slash == std::string::npos
                                   ? case_ + "/*"
                                   : case_.substr(0, slash) + "/*" + case_.substr(slash);
    testing::GTEST_FLAG(filter) = filter;
  }
  // Owned by GoogleTest from here on.
  testing::UnitTest::GetInstance()->listeners().Append(new StartListener);
  const int result = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    const std::string message = "no case is called " + case_;
    report_->usage(message);
    std::fprintf(stderr, "%s\n", message.c_str());
    return 2;
  }
  const int code = finish();
  return code == 0 && result != 0 ? 70 : code;  // a failure that is not about a case is ours
}

int Suite::finish() {
  child_->stop();
  report_->output(child_->take_output(), child_->output_truncated());
  report_->diagnosis(diagnosis_.best(case_.empty()));
  report_->end(counts_);
  return exit_code();
}

int Suite::run_fuzz(const std::vector<FuzzTarget>& targets) {
  hello(1);
  if (no_hello_) return finish();
  if (fuzz_seconds_ > 0.0 && !targets.empty()) {
    fuzz(targets, fuzz_seconds_);
  } else if (!run_fuzz_case(targets, case_)) {
    report_->usage("no random case is called " + case_);
    return 2;
  }
  return finish();
}

void run_check(const std::string& name,
               const std::string& shape,
               const std::function<Verdict()>& check) {
  Suite& suite = Suite::get();
  CaseRecord record = {name, shape, "", suite.seed(), 0.0};
  Verdict verdict;
  if (suite.stopped()) {
    verdict.state = State::kNotRun;
    verdict.sentence = "not run after several crashes or hangs";
  } else if (!suite.device_refusal().empty()) {
    verdict.state = State::kSkip;
    verdict.sentence = suite.device_refusal();
  } else {
    const auto begin = std::chrono::steady_clock::now();
    verdict = check();
    record.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  suite.record(record, verdict);
  tell_googletest(verdict);
}

void tell_googletest(const Verdict& verdict) {
  switch (verdict.state) {
    case State::kPass:
      return;
    case State::kTodo:
    case State::kSkip:
    case State::kNotRun: {
      std::string text = verdict.sentence;
      for (const std::string& region : verdict.todo) text += " TODO(" + region + ")";
      GTEST_SKIP() << text;
    }
    default: {
      std::string text = std::string(name_of(verdict.state)) + ": " + verdict.sentence;
      for (const std::string& line : verdict.evidence) text += "\n  " + line;
      if (!verdict.code.empty()) text += "\n  code " + verdict.code + " region " + verdict.region;
      if (!verdict.fault.empty()) text += "\n" + verdict.fault;
      ADD_FAILURE() << text;
    }
  }
}

int stage_main(int argc,
               char** argv,
               const char* stage,
               std::vector<std::string> regions,
               const std::vector<FuzzTarget>& targets,
               const std::function<void()>& make_tables) {
  if (argc > 1 && std::strcmp(argv[1], "--mistakes") == 0) {
    list_mistakes(make_tables);
    return 0;
  }
  // Every case is judged: none is left out by what the environment says.
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER"})
    unsetenv(name);
  secret();  // kept, then taken away
  unsetenv(kSecretVariable);
  testing::GTEST_FLAG(filter) = "*";
  testing::InitGoogleTest(&argc, argv);
  Suite& suite = Suite::get();
  if (!suite.configure(argc, argv, stage, std::move(regions))) return 2;
  return suite.run(targets);
}

}  // namespace moe::judge
