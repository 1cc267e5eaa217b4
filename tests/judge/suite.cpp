#include "suite.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "mistakes.h"
#include "models.h"

namespace moe::judge {
namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;  // cudaErrorInvalidValue

uint32_t todo_hash(const std::string& region) {  // as in drills/todo.h
  uint32_t hash = 2166136261u;
  for (const char c : region) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash == 0 ? 1 : hash;
}

// A fault that means "it would never end" on a GPU.
bool is_hang(const std::string& fault) {
  return fault.rfind("deadlock:", 0) == 0 || fault.rfind("hang:", 0) == 0;
}

// Says hello once GoogleTest knows how many cases will run.
class StartListener : public testing::EmptyTestEventListener {
  void OnTestIterationStart(const testing::UnitTest& unit, int /*iteration*/) override {
    Suite::get().hello(unit.test_to_run_count());
  }
};

// "deadlock: no thread of the block can go on\n  ..." -> "No thread of the block can go on."
std::string sentence_of(const std::string& fault) {
  std::string line = fault.substr(0, fault.find('\n'));
  const size_t colon = line.find(": ");
  if (colon != std::string::npos) line.erase(0, colon + 2);
  if (!line.empty()) line[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(line[0])));
  if (!line.empty() && line.back() != '.') line += '.';
  return line;
}

// "missing wait: ..." -> "MISSING-WAIT".
std::string code_of(const std::string& fault) {
  std::string kind = fault.substr(0, fault.find(':'));
  for (char& c : kind) {
    c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return kind;
}

std::string bounded(const char* text, size_t size) {
  return {text, strnlen(text, size)};
}

}  // namespace

Suite& Suite::get() {
  static Suite suite;
  return suite;
}

bool Suite::configure(int argc, char** argv, const char* stage, std::vector<std::string> regions) {
  stage_ = stage;
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
    } else if (option == "--print") {
      look_options().trace = parse_place(value, look_options().place);
    } else if (option == "--case-limit-ms") {
      case_limit_ms_ = std::atoi(value.c_str());
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], option.c_str());
      return false;
    }
  }
  if (runner_.empty()) std::fprintf(stderr, "%s: --runner PATH is missing\n", argv[0]);
  return !runner_.empty();
}

std::vector<Step> Suite::steps(size_t index) const {
  using protocol::Kind;
  using protocol::ThreadOrder;
  const Step forward = {"forward thread order", Kind::kCall, ThreadOrder::kForward, 0};
  const Step reversed = {"reversed thread order", Kind::kCall, ThreadOrder::kReverse, 0};
  if (!full_) return {index % 2 == 0 ? forward : reversed};
  // The second call has other data, in the same process: what was kept from the first would show.
  return {
      forward,
      {"reversed thread order, second call with other data", Kind::kCall, ThreadOrder::kReverse, 1},
      {"captured in a graph and replayed with other data", Kind::kReplay, ThreadOrder::kForward,
       2}};
}

uint64_t Suite::seed_of(const std::string& case_name, uint64_t data) const {
  return mix(mix(seed_, case_name) + data);
}

std::vector<std::string> Suite::reached_todos(const protocol::Reply& reply) const {
  std::vector<std::string> reached;
  const uint32_t count = std::min<uint32_t>(reply.num_todos, protocol::kMaxTodos);
  for (uint32_t i = 0; i < count; ++i) {
    std::string name = bounded(reply.todo_names[i], protocol::kTodoNameBytes);
    for (const std::string& region : regions_) {
      if (name.empty() && todo_hash(region) == reply.todo_hashes[i]) name = region;
    }
    reached.push_back(name.empty() ? "a blank of unknown name" : name);
  }
  return reached;
}

Verdict Suite::verdict_of_death(const Answer& answer) {
  Verdict verdict;
  verdict.fault = answer.report;
  if (answer.kind == Answer::Kind::kTimedOut) {
    verdict.state = State::kHang;
    verdict.sentence = "No answer in " + std::to_string(case_limit_ms_ / 1000) +
                       " s; the process was stopped. A loop may never end.";
  } else if (is_hang(answer.report)) {
    verdict.state = State::kHang;
    verdict.sentence = sentence_of(answer.report);
    verdict.code = code_of(answer.report);
  } else if (answer.kind == Answer::Kind::kProtocol) {
    verdict.state = State::kCrash;
    verdict.sentence = "Your code wrote to the connection with the tests.";
  } else if (answer.exit_status >= 0) {
    verdict.state = State::kCrash;
    verdict.sentence = "Your code ended the process (" + answer.death + ").";
  } else {
    verdict.state = State::kCrash;
    verdict.sentence = "The process died: " + answer.death + ".";
  }
  ++(verdict.state == State::kHang ? hangs_ : deaths_);
  return verdict;
}

Verdict Suite::verdict_of_reply(const Step& step, const protocol::Reply& reply, bool refused) {
  Verdict verdict;
  const auto status_name = [&](int i) { return bounded(reply.status_names[i], 48); };
  verdict.todo = reached_todos(reply);
  if (!verdict.todo.empty()) {
    verdict.state = State::kTodo;
    return verdict;
  }
  verdict.fault = bounded(reply.fault, sizeof reply.fault);
  if (reply.device_status == kSuccess && !verdict.fault.empty()) {
    child_->stop();  // the emulator would repeat its report
    Verdict launch = wrong("A launch was refused. " + sentence_of(verdict.fault));
    launch.code = code_of(verdict.fault);
    launch.fault = verdict.fault;
    return launch;
  }
  if (reply.device_status != kSuccess) {
    verdict.state = is_hang(verdict.fault) ? State::kHang : State::kCrash;
    verdict.sentence = "The kernel failed: " + status_name(1) + ".";
    if (!verdict.fault.empty()) {
      verdict.sentence = sentence_of(verdict.fault);
      verdict.code = code_of(verdict.fault);
    }
    ++(verdict.state == State::kHang ? hangs_ : deaths_);
    child_->stop();  // a GPU context is unusable after a fault, and so is the emulator's
    return verdict;
  }
  const std::string refusal = bounded(reply.refusal, sizeof reply.refusal);
  if (refused) {
    if (reply.call_status == kInvalidValue) return verdict;
    return wrong(
        "These arguments break a rule of the contract; return cudaErrorInvalidValue before any "
        "launch.",
        {"the rule: " + refusal, "the call returned " + status_name(0)});
  }
  if (step.kind == protocol::Kind::kReplay && reply.capture_status != kSuccess) {
    return wrong(kSync, {"capture ended with " + status_name(2)});
  }
  if (reply.call_status != kSuccess) {
    return wrong("A legal call returned an error: " + status_name(0) + ".");
  }
  if (reply.leaked_bytes > 0 && step.data > 0 && backend_ == "cpu") {
    return wrong(kLeak, {std::to_string(reply.leaked_bytes) + " bytes were not given back"});
  }
  return verdict;
}

Verdict Suite::run_step(const Step& step,
                        const Call& call,
                        const Call* captured,
                        bool refused,
                        Answer& answer,
                        Images& images) {
  protocol::Request request = {};
  request.kind = step.kind;
  request.order = step.order;
  request.operation = call.operation;
  std::copy(call.integers.begin(), call.integers.end(), request.integers);
  images = images_of(call, mix(seed_ + step.data));
  request.num_buffers = static_cast<uint32_t>(images.places.size());
  std::copy(images.places.begin(), images.places.end(), request.buffers);
  Images first;
  if (captured != nullptr) first = images_of(*captured, mix(seed_ + step.data + 1));
  answer = captured != nullptr ? child_->ask(request, &first, &images, case_limit_ms_)
                               : child_->ask(request, &images, nullptr, case_limit_ms_);
  if (answer.kind != Answer::Kind::kReplied) return verdict_of_death(answer);
  Verdict verdict = verdict_of_reply(step, answer.reply, refused);
  if (!verdict.pass()) return verdict;
  verdict = check_untouched(call, images, answer.after);
  if (verdict.pass() && refused && answer.after != images.bytes) {
    return wrong("A refused call wrote to memory; check the arguments before any launch.");
  }
  return verdict;
}

Verdict Suite::probe(const Step& failed,
                     const Call& call,
                     Verdict verdict,
                     const Attempt& attempt) {
  const bool unnamed = verdict.code.empty() || verdict.code == "OOB";
  if (!unnamed || (verdict.state != State::kWrong && verdict.state != State::kCrash))
    return verdict;
  const int deaths = deaths_;
  const int hangs = hangs_;
  const auto again = [&](const Step& step, bool zero_workspace) {
    child_->stop();  // every try in a fresh process
    return attempt(step, zero_workspace);
  };
  const auto passes = [&](const Step& step, bool zero_workspace) {
    return again(step, zero_workspace).pass();
  };
  const auto named = [&](const Mistake& mistake, const char* seen) {
    verdict.code = mistake.code;
    verdict.sentence = mistake.sentence;
    verdict.evidence.emplace_back(seen);
  };
  Step other = failed;
  const bool forward = failed.order == protocol::ThreadOrder::kForward;
  other.order = forward ? protocol::ThreadOrder::kReverse : protocol::ThreadOrder::kForward;
  Step plain = failed;
  plain.kind = protocol::Kind::kCall;
  const bool has_workspace =
      std::any_of(call.buffers.begin(), call.buffers.end(),
                  [](const HostBuffer& b) { return b.role == Role::kWorkspace && !b.null; });
  if (failed.data > 0 && passes(failed, false)) {
    named(kKept, "the same step alone passes");
  } else if (failed.kind == protocol::Kind::kReplay && passes(plain, false)) {
    named(kReplay, "the same data in a plain call pass");
  } else if (has_workspace && passes(failed, true)) {
    named(kDirty, "with a workspace of zeros the case passes");
  } else if (backend_ == "cpu") {
    const Verdict second = again(other, false);
    const bool differs = second.state == verdict.state && second.evidence != verdict.evidence;
    if (second.pass() || differs) {
      named(kRace, differs   ? "in the other thread order the result is wrong in another way"
                   : forward ? "the same case passes with threads in reversed order"
                             : "the same case passes with threads in forward order");
    }
  }
  child_->stop();
  deaths_ = deaths;
  hangs_ = hangs;
  return verdict;
}

int64_t Suite::ask_value(uint32_t operation,
                         const std::vector<int64_t>& integers,
                         Verdict& verdict) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kValue;
  request.operation = operation;
  std::copy(integers.begin(), integers.end(), request.integers);
  const Answer answer = child_->ask(request, nullptr, nullptr, case_limit_ms_);
  if (answer.kind == Answer::Kind::kReplied) {
    verdict.todo = reached_todos(answer.reply);
    if (!verdict.todo.empty()) verdict.state = State::kTodo;
    return answer.reply.value;
  }
  verdict = verdict_of_death(answer);
  return -1;
}

void Suite::record(const CaseRecord& record, const Verdict& verdict) {
  ++counts_[static_cast<int>(verdict.state)];
  report_->output(child_->take_output(), child_->output_truncated());
  report_->add(record, verdict);
  // A failure without a name counts too: a mistake that explains one case of twenty is not the one.
  const bool failed = verdict.state == State::kWrong || verdict.state == State::kCrash ||
                      verdict.state == State::kHang;
  if (failed) count_named(record.name, verdict);
}

bool Suite::worth_trying(const Mistake& mistake) const {
  if (failures_ < kFailuresTriedInFull) return true;
  return std::any_of(named_.begin(), named_.end(),
                     [&](const Named& n) { return n.verdict.code == mistake.code; });
}

bool worth_trying(const Mistake& mistake) {
  return Suite::get().worth_trying(mistake);
}

void Suite::count_named(const std::string& case_name, const Verdict& verdict) {
  ++failures_;
  std::vector<Verdict> all = {verdict};
  for (const Mistake& mistake : verdict.also) {
    all.push_back(wrong(mistake, {}));
    all.back().state = verdict.state;
  }
  for (const Verdict& one : all) {
    auto known = std::find_if(named_.begin(), named_.end(),
                              [&](const Named& n) { return n.verdict.code == one.code; });
    if (known == named_.end()) known = named_.insert(known, {case_name, one, 0});
    ++known->cases;
  }
}

// What one case leaves open (two mistakes that it can't tell apart) the others often settle.
void Suite::report_diagnosis() {
  const auto best =
      std::max_element(named_.begin(), named_.end(), [](const Named& a, const Named& b) {
        return a.cases < b.cases;  // the first of equals
      });
  if (best != named_.end()) report_->diagnosis(best->first_case, best->verdict, best->cases);
}

void Suite::hello(int cases) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kHello;
  const Answer answer =
      child_->ask(request, nullptr, nullptr, std::max(hello_limit_ms_, case_limit_ms_));
  report_->start({stage_, side_, backend_, bounded(answer.reply.device, 96),
                  full_ ? "full" : "quick", seed_, cases});
  if (answer.kind == Answer::Kind::kReplied) return;
  // A child that can't even say hello will not do better at the next case.
  const Verdict verdict = verdict_of_death(answer);
  record({"start", "", "before the first case", seed_, 0.0}, verdict);
  no_hello_ = true;
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

int Suite::run() {
  child_ = std::make_unique<Child>(runner_, case_limit_ms_ > 10'000 ? 20'000 : 200);
  report_ = std::make_unique<Report>(report_path_);
  if (access(runner_.c_str(), X_OK) != 0) {
    std::fprintf(stderr, "no runner at %s\n", runner_.c_str());
    return 70;
  }
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
  child_->stop();
  report_->output(child_->take_output(), child_->output_truncated());
  report_diagnosis();
  report_->end(counts_);
  const int code = exit_code();
  return code == 0 && result != 0 ? 70 : code;  // a failure that is not about a case is ours
}

void run_check(const std::string& name,
               const std::string& shape,
               const std::function<Verdict()>& check) {
  Suite& suite = Suite::get();
  CaseRecord record = {name, shape, "", suite.seed(), 0.0};
  suite.next_case();
  Verdict verdict;
  if (suite.stopped()) {
    verdict.state = State::kNotRun;
    verdict.sentence = "not run after several crashes or hangs";
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
               const std::function<void()>& make_tables) {
  if (argc > 1 && std::strcmp(argv[1], "--mistakes") == 0) {
    list_mistakes(make_tables);
    return 0;
  }
  // Every case is judged: none is left out by what the environment says.
  for (const char* name : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_FILTER"})
    unsetenv(name);
  testing::GTEST_FLAG(filter) = "*";
  testing::InitGoogleTest(&argc, argv);
  Suite& suite = Suite::get();
  if (!suite.configure(argc, argv, stage, std::move(regions))) return 2;
  return suite.run();
}

}  // namespace moe::judge
