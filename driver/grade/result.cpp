#include "driver/grade/result.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace moe::grade {
namespace {

using Json = nlohmann::ordered_json;
using driver::CaseState;

constexpr std::array kStates{CaseState::kPass,  CaseState::kWrong, CaseState::kTodo,
                             CaseState::kCrash, CaseState::kHang,  CaseState::kSkip,
                             CaseState::kNotRun};

constexpr std::array kMarks{Mark::kPass,    Mark::kWrong, Mark::kTodo, Mark::kBuild,
                            Mark::kRule,    Mark::kCrash, Mark::kHang, Mark::kMemory,
                            Mark::kMissing, Mark::kFault};

CaseState state_of(const std::string& word) {
  const auto found = std::find_if(kStates.begin(), kStates.end(),
                                  [&](CaseState state) { return word == word_of(state); });
  if (found == kStates.end()) throw std::runtime_error("unknown state " + word);
  return *found;
}

Mark mark_of_word(const std::string& word) {
  const auto found =
      std::find_if(kMarks.begin(), kMarks.end(), [&](Mark mark) { return word == word_of(mark); });
  if (found == kMarks.end()) throw std::runtime_error("unknown mark " + word);
  return *found;
}

Json json_of(const CaseResult& one) {
  return {{"name", one.name},         {"state", word_of(one.state)}, {"code", one.code},
          {"sentence", one.sentence}, {"region", one.region},        {"note", one.note},
          {"step", one.step},         {"shape", one.shape},          {"fault", one.fault},
          {"evidence", one.evidence}, {"seconds", one.seconds}};
}

CaseResult case_of(const Json& json) {
  CaseResult one;
  one.name = json.at("name").get<std::string>();
  one.state = state_of(json.at("state").get<std::string>());
  one.code = json.at("code").get<std::string>();
  one.sentence = json.at("sentence").get<std::string>();
  one.region = json.at("region").get<std::string>();
  one.note = json.at("note").get<std::string>();
  one.step = json.at("step").get<std::string>();
  one.shape = json.at("shape").get<std::string>();
  one.fault = json.at("fault").get<std::string>();
  one.evidence = json.at("evidence").get<std::vector<std::string>>();
  one.seconds = json.at("seconds").get<double>();
  return one;
}

Json json_of(const CostFigures& cost) {
  return {{"taken", cost.taken},
          {"sectors_per_request", cost.sectors_per_request},
          {"bank_conflicts", cost.bank_conflicts},
          {"bytes_ratio", cost.bytes_ratio},
          {"problem", cost.problem}};
}

CostFigures cost_of(const Json& json) {
  CostFigures cost;
  cost.taken = json.at("taken").get<bool>();
  cost.sectors_per_request = json.at("sectors_per_request").get<double>();
  cost.bank_conflicts = json.at("bank_conflicts").get<double>();
  cost.bytes_ratio = json.at("bytes_ratio").get<double>();
  cost.problem = json.at("problem").get<std::string>();
  return cost;
}

}  // namespace

const char* word_of(Mark mark) {
  switch (mark) {
    case Mark::kPass:
      return "PASS";
    case Mark::kWrong:
      return "WRONG";
    case Mark::kTodo:
      return "TODO";
    case Mark::kBuild:
      return "BUILD";
    case Mark::kRule:
      return "RULE";
    case Mark::kCrash:
      return "CRASH";
    case Mark::kHang:
      return "HANG";
    case Mark::kMemory:
      return "MEMORY";
    case Mark::kMissing:
      return "MISSING";
    case Mark::kFault:
      return "FAULT";
  }
  return "FAULT";
}

Mark mark_of(driver::Verdict verdict) {
  switch (verdict) {
    case driver::Verdict::kPass:
      return Mark::kPass;
    case driver::Verdict::kWrong:
      return Mark::kWrong;
    case driver::Verdict::kTodo:
      return Mark::kTodo;
    case driver::Verdict::kBuild:
      return Mark::kBuild;
    case driver::Verdict::kCrash:
      return Mark::kCrash;
    case driver::Verdict::kHang:
      return Mark::kHang;
    default:
      return Mark::kFault;
  }
}

const char* word_of(CaseState state) {
  switch (state) {
    case CaseState::kPass:
      return "pass";
    case CaseState::kWrong:
      return "wrong";
    case CaseState::kTodo:
      return "todo";
    case CaseState::kCrash:
      return "crash";
    case CaseState::kHang:
      return "hang";
    case CaseState::kSkip:
      return "skip";
    case CaseState::kNotRun:
      return "not_run";
  }
  return "not_run";
}

const CaseResult* StageResult::diagnosed() const {
  const auto failed = [](const CaseResult& one) {
    return one.state != CaseState::kPass && one.state != CaseState::kSkip;
  };
  const auto named = [&](const CaseResult& one) {
    return failed(one) && one.sentence == sentence && one.code == code;
  };
  auto found = std::find_if(cases.begin(), cases.end(), named);
  if (found == cases.end()) found = std::find_if(cases.begin(), cases.end(), failed);
  return found == cases.end() ? nullptr : &*found;
}

std::string to_text(const StageResult& result) {
  Json json = {{"version", 1},
               {"key", result.key},
               {"mark", word_of(result.mark)},
               {"code", result.code},
               {"sentence", result.sentence},
               {"text", result.text},
               {"output", result.output},
               {"attempts", result.attempts},
               {"flaky", result.flaky},
               {"mine_us", result.timing.mine_us},
               {"reference_us", result.timing.reference_us},
               {"timing_problem", result.timing.problem},
               {"cost", json_of(result.cost)},
               {"reference_cost", json_of(result.reference_cost)},
               {"build_seconds", result.build_seconds},
               {"test_seconds", result.test_seconds},
               {"cases", Json::array()}};
  for (const CaseResult& one : result.cases) json["cases"].push_back(json_of(one));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

StageResult stage_from_text(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.at("version").get<int>() != 1) throw std::runtime_error("another version");
  StageResult result;
  result.key = json.at("key").get<std::string>();
  result.mark = mark_of_word(json.at("mark").get<std::string>());
  result.code = json.at("code").get<std::string>();
  result.sentence = json.at("sentence").get<std::string>();
  result.text = json.at("text").get<std::string>();
  result.output = json.at("output").get<std::string>();
  result.attempts = json.at("attempts").get<int>();
  result.flaky = json.at("flaky").get<bool>();
  result.timing.mine_us = json.at("mine_us").get<double>();
  result.timing.reference_us = json.at("reference_us").get<double>();
  result.timing.problem = json.at("timing_problem").get<std::string>();
  result.cost = cost_of(json.at("cost"));
  result.reference_cost = cost_of(json.at("reference_cost"));
  result.build_seconds = json.at("build_seconds").get<double>();
  result.test_seconds = json.at("test_seconds").get<double>();
  for (const Json& one : json.at("cases")) result.cases.push_back(case_of(one));
  return result;
}

bool write_durably(const std::filesystem::path& path, const std::string& text) {
  const std::filesystem::path draft = path.string() + ".new";
  const int file = open(draft.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  const bool complete = done == text.size() && fsync(file) == 0;
  close(file);
  if (!complete) return false;
  std::error_code error;
  std::filesystem::rename(draft, path, error);
  const int folder = open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return !error;
}

}  // namespace moe::grade
