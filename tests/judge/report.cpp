#include "report.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace moe::judge {
namespace {

// Text of the child may hold anything: what is no UTF-8 becomes a replacement mark, never an
// exception.
std::string dump(const nlohmann::ordered_json& record) {
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

Report::Report(const std::string& path) {
  if (!path.empty()) file_ = std::fopen(path.c_str(), "we");
}

Report::~Report() {
  if (file_ != nullptr) std::fclose(file_);
}

void Report::line(const std::string& text) {
  if (file_ == nullptr) return;
  std::fprintf(file_, "%s\n", text.c_str());
  std::fflush(file_);
}

void Report::start(const RunStart& run) {
  line(dump({{"type", "start"},
             {"stage", run.stage},
             {"side", run.side},
             {"backend", run.backend},
             {"device", run.device},
             {"set", run.set},
             {"seed", run.seed},
             {"cases", run.cases}}));
}

void Report::add(const CaseRecord& record, const Verdict& verdict) {
  nlohmann::ordered_json json = {{"type", "case"},
                                 {"name", record.name},
                                 {"state", name_of(verdict.state)},
                                 {"seconds", record.seconds},
                                 {"shape", record.shape},
                                 {"seed", record.seed}};
  if (record.digest != 0 && verdict.pass()) json["digest"] = record.digest;
  const auto add_text = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  add_text("step", record.step);
  add_text("sentence", verdict.sentence);
  add_text("code", verdict.code);
  add_text("region", verdict.region);
  add_text("note", verdict.note);
  add_text("fault", verdict.fault);
  if (!verdict.evidence.empty()) json["evidence"] = verdict.evidence;
  if (!verdict.todo.empty()) json["todo"] = verdict.todo;
  for (const Mistake& mistake : verdict.also) json["also"].push_back(mistake.code);
  if (!record.look.trace.empty()) json["trace"] = record.look.trace;
  if (const WrongMap& map = record.look.map; !map.cells.empty()) {
    std::string cells;  // one digit a value
    for (const uint8_t cell : map.cells) cells += static_cast<char>('0' + cell);
    json["map"] = {
        {"name", map.name}, {"rows", map.rows}, {"columns", map.columns}, {"cells", cells}};
  }
  line(dump(json));
}

void Report::diagnosis(const std::vector<Diagnosis::Named>& best) {
  if (best.empty()) return;
  const Verdict& verdict = best.front().verdict;
  nlohmann::ordered_json json = {{"type", "diagnosis"},
                                 {"case", best.front().cases.front()},
                                 {"state", name_of(verdict.state)},
                                 {"sentence", verdict.sentence},
                                 {"code", verdict.code},
                                 {"region", verdict.region},
                                 {"note", verdict.note},
                                 {"cases", best.front().cases.size()}};
  for (size_t i = 1; i < best.size(); ++i) {
    json["or"].push_back({{"code", best[i].verdict.code}, {"sentence", best[i].verdict.sentence}});
  }
  line(dump(json));
}

void Report::output(const std::string& text, bool truncated) {
  if (!text.empty()) line(dump({{"type", "output"}, {"text", text}, {"truncated", truncated}}));
}

void Report::usage(const std::string& message) {
  line(dump({{"type", "usage"}, {"message", message}}));
}

void Report::end(const int (&counts)[7]) {
  nlohmann::ordered_json json = {{"type", "end"}};
  for (int i = 0; i < 7; ++i) {
    json[i == 0 ? "passed" : name_of(static_cast<State>(i))] = counts[i];
  }
  line(dump(json));
}

}  // namespace moe::judge
