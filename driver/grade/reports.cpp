#include "driver/grade/reports.h"

#include <algorithm>

#include "driver/grade/class_run.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

// How many bytes of a well-formed UTF-8 character start at `at`; 0: none.
std::size_t utf8_length(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const unsigned first = byte(0);
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) >= 0xa0;
    const bool no_character = first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;  // not in XML
    return continues(1) && continues(2) && !overlong && !surrogate && !no_character ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool too_large = first == 0xf4 && byte(1) >= 0x90;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string clean_text(const std::string& text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto c = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      clean += "\xef\xbf\xbd";  // the replacement character
      ++at;
    } else if (length == 1) {
      const bool control = (c < 0x20 && c != '\n') || c == 0x7f;
      clean += control ? ' ' : text[at];
      ++at;
    } else {
      clean.append(text, at, length);
      at += length;
    }
  }
  while (!clean.empty() && clean.back() == '\n') clean.pop_back();
  return clean;
}

StageScore ClassReport::score(const StudentResult& student, const Stage& stage) const {
  return score_stage(student.stages.at(stage.stem), expected.at(stage.stem), scheme, stage.id,
                     timed);
}

bool ClassReport::total(const StudentResult& student, double& earned, double& maximum) const {
  earned = maximum = 0;
  bool complete = true;
  for (const Stage* stage : stages) {
    const StageScore one = score(student, *stage);
    complete = complete && one.scored;
    earned += one.earned;
    maximum += one.maximum;
  }
  return complete;
}

std::vector<std::string> write_reports(const ClassReport& report,
                                       const std::vector<std::string>& formats,
                                       const fs::path& schema,
                                       const fs::path& out) {
  std::vector<std::string> written;
  const auto wanted = [&](const char* format) {
    return std::count(formats.begin(), formats.end(), format) > 0;
  };
  const auto write = [&](const std::string& name, const std::string& text) {
    if (!write_durably(out / name, text)) {
      throw std::runtime_error("cannot write " + (out / name).string());
    }
  };
  const auto write_each = [&](const std::string& folder, const std::string& ending, auto make) {
    fs::remove_all(out / folder);  // pages of students who are no longer there
    fs::create_directories(out / folder);
    for (const StudentResult& student : report.students) {
      std::string name = folder;
      name.append("/").append(file_name_of(student.student)).append(ending);
      write(name, make(report, student));
    }
    written.push_back(folder + "/");
  };
  if (wanted("csv")) {
    write("results.csv", results_csv(report));
    write("summary.csv", summary_csv(report));
    written.insert(written.end(), {"summary.csv", "results.csv"});
  }
  if (wanted("json")) {
    write("results.json", results_json(report));
    write(schema.filename(), driver::read_file(schema));
    written.emplace_back("results.json");
  }
  if (wanted("junit")) {
    write("junit.xml", junit_xml(report));
    written.emplace_back("junit.xml");
  }
  if (wanted("gradescope")) write_each("gradescope", ".json", gradescope_json);
  if (wanted("actions")) write_each("actions", ".json", actions_json);
  write_each("pages", ".html", student_page);
  return written;
}

}  // namespace moe::grade
