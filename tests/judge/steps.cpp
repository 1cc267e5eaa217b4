// How one step of a case is run, and what is said of it without knowing the stage: deaths, errors,
// memory, and the probes that name what values can't show.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "case_size.h"
#include "mistakes.h"
#include "suite.h"

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

}  // namespace

std::vector<std::string> Suite::reached_todos(const protocol::Reply& reply) const {
  std::vector<std::string> reached;
  const uint32_t count = std::min<uint32_t>(reply.num_todos, protocol::kMaxTodos);
  for (uint32_t i = 0; i < count; ++i) {
    std::string name = text_in(reply.todo_names[i]);
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
  const auto status_name = [&](int i) { return text_in(reply.status_names[i]); };
  verdict.todo = reached_todos(reply);
  if (!verdict.todo.empty()) {
    // What a blank leaves undone may break the device for the next case.
    if (reply.device_status != kSuccess || reply.fault[0] != '\0') child_->stop();
    verdict.state = State::kTodo;
    return verdict;
  }
  verdict.fault = text_in(reply.fault);
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
  // Before other errors: a request that was not granted is the likely cause of one.
  if (reply.num_allocations > 0) {
    return wrong(kAllocates, {"requests: " + std::to_string(reply.num_allocations) +
                              ", bytes: " + std::to_string(reply.allocated_bytes)});
  }
  const std::string refusal = text_in(reply.refusal);
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
  return verdict;
}

Verdict Suite::run_step(const Step& step,
                        const Call& call,
                        const Call* captured,
                        bool refused,
                        Answer& answer,
                        Images& images) {
  if (is_too_large(call)) {
    Verdict verdict;
    verdict.state = State::kSkip;
    verdict.sentence = "larger than a check takes";
    return verdict;
  }
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
  // Nothing written after a step that passed: why comes from what was called before, not from the
  // missing values.
  const bool later = failed.data > 0 || failed.kind == protocol::Kind::kReplay;
  const bool unnamed = verdict.code.empty() || verdict.code == kOutOfBounds.code ||
                       (verdict.nothing_written && later);
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
    if (!verdict.code.empty() && verdict.nothing_written) {  // another's place
      verdict.region.clear();
      verdict.note.clear();
      verdict.also.clear();
    }
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
  if (passes(failed, false)) {
    // Whatever is tried after that would pass too, and prove nothing.
    const bool kept = failed.data > 0;
    named(kept ? kKept : kUnstable, kept ? "the same step alone passes" : "run again, it passes");
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
  if (stopped()) return -1;
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

}  // namespace moe::judge
