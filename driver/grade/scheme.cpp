#include "driver/grade/scheme.h"

#include <toml++/toml.h>
#include <set>

#include "driver/course.h"
#include "driver/grade/usage.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

const std::map<std::string, double>& default_groups() {
  static const std::map<std::string, double> kGroups{{"tiny", 1},    {"edge", 4}, {"random", 2},
                                                     {"refused", 1}, {"far", 1},  {"hidden", 3}};
  return kGroups;
}

constexpr double kDefaultPoints = 20;

// One table of the file; whatever is not taken out of it is an error, so that a slip of the pen
// does not silently grade by a default.
class Table {
 public:
  Table(const toml::table& table, std::string name, std::string file)
      : table_(table), name_(std::move(name)), file_(std::move(file)) {}

  [[noreturn]] void fail(const toml::source_region& where, const std::string& what) const {
    throw UsageError(file_ + ":" + std::to_string(where.begin.line) + ": " + what);
  }

  const toml::node* take(const std::string& key) {
    known_.insert(key);
    return table_.get(key);
  }

  void number(const std::string& key, double low, double high, double& value) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    value = number_of(*node, key, low, high);
  }

  double number_of(const toml::node& node, const std::string& key, double low, double high) const {
    if (!node.is_number()) fail(node.source(), full(key) + " must be a number");
    const double value = node.value<double>().value_or(0);
    if (!(value >= low && value <= high)) {
      char range[96];
      std::snprintf(range, sizeof range, " must be at least %g and at most %g", low, high);
      fail(node.source(), full(key) + range);
    }
    return value;
  }

  void number(const std::string& key, double low, double high, std::optional<double>& value) {
    const toml::node* node = take(key);
    if (node != nullptr) value = number_of(*node, key, low, high);
  }

  void boolean(const std::string& key, bool& value) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    if (!node->is_boolean()) fail(node->source(), full(key) + " must be true or false");
    value = node->value<bool>().value_or(value);
  }

  std::string word(const std::string& key,
                   const std::vector<std::string>& allowed,
                   const std::string& value) {
    const toml::node* node = take(key);
    if (node == nullptr) return value;
    std::string given = node->value<std::string>().value_or("");
    for (const std::string& one : allowed) {
      if (given == one) return given;
    }
    fail(node->source(), full(key) + " must be one of: " + list_of(allowed));
  }

  void words(const std::string& key,
             const std::vector<std::string>& allowed,
             std::vector<std::string>& values) {
    const toml::node* node = take(key);
    if (node == nullptr) return;
    if (!node->is_array()) fail(node->source(), full(key) + " must be a list");
    values.clear();
    for (const toml::node& one : *node->as_array()) {
      const std::string word = one.value<std::string>().value_or("");
      bool known = false;
      for (const std::string& each : allowed) known = known || word == each;
      if (!known) fail(one.source(), full(key) + " knows only: " + list_of(allowed));
      values.push_back(word);
    }
  }

  void numbers(const std::vector<std::string>& keys,
               double high,
               std::map<std::string, double>& values) {
    for (const std::string& key : keys) {
      const toml::node* node = take(key);
      if (node != nullptr) values[key] = number_of(*node, key, 0, high);
    }
  }

  void finish() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (known_.count(name) != 0) continue;
      std::vector<std::string> candidates(known_.begin(), known_.end());
      const std::string near = driver::nearest(name, candidates, 3);
      fail(node.source(), full(name) + " is not known" +
                              (near.empty() ? "" : ". Did you mean " + full(near) + "?"));
    }
  }

 private:
  std::string full(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }
  static std::string list_of(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  const toml::table& table_;
  std::string name_;
  std::string file_;
  std::set<std::string> known_;
};

std::vector<std::string> group_names() {
  std::vector<std::string> names;
  for (const auto& [name, weight] : default_groups()) names.push_back(name);
  return names;
}

std::vector<std::string> stage_ids() {
  std::vector<std::string> ids;
  for (const Stage& stage : kStages) ids.emplace_back(stage.id);
  return ids;
}

// Calls `use` with a table of the file, where there is one.
template <class Use>
void with_table(Table& root,
                const toml::table& file,
                const std::string& key,
                const std::string& name,
                Use use) {
  const toml::node* node = root.take(key);
  if (node == nullptr) return;
  if (!node->is_table()) root.fail(node->source(), key + " must be a table: [" + key + "]");
  Table table(*file.get_as<toml::table>(key), key, name);
  use(table);
  table.finish();
}

void check_sense(const Scheme& scheme, const std::string& name) {
  double weights = 0;
  for (const auto& [group, weight] : scheme.groups) weights += weight;
  if (weights <= 0) throw UsageError(name + ": all weights in [groups] are 0");
  if (scheme.no_points_ratio <= scheme.full_points_ratio) {
    throw UsageError(name + ": performance.no_points_at must be above performance.full_points_at");
  }
  if (scheme.performance_share + scheme.cost_share > 1) {
    throw UsageError(name + ": performance.share and cost.share are more than 1 together");
  }
}

// The tables of grading.toml that are the same for every course, with comments.
constexpr const char* kShares = R"(
# Part of a stage's points for speed, on a GPU (`drill grade --gpu`): the student's time over the
# reference's, both measured in turns in the same run. Only for stages whose cases all pass.
[performance]
share = 0.0             # 0.3: 30 % of the points are for speed
shape = "A"             # as in `drill bench --shape`
full_points_at = 1.2    # up to 1.2 times the reference's time
no_points_at = 10.0     # from here on; in between in proportion

# Part of a stage's points for a cheap kernel, without a GPU and a clock: the figures of `drill cost`
# for a small case. All or nothing, and only for stages whose cases all pass. The first line bounds all
# three figures by a multiple of the reference's; each of the others takes its place for one of them.
[cost]
share = 0.0             # 0.2: 20 % of the points are for it
max_of_reference = 1.25
# max_sectors_per_request = 12.0   # 32-byte sectors that a warp's access to global memory touches
# max_bank_conflicts = 0           # passes over shared memory that a better layout would save
# max_bytes_ratio = 1.5            # bytes in DRAM over the least that the contract allows

)";
constexpr const char* kLimits = R"([limits]
compile_seconds = 60
compile_gib = 3
stage_seconds = 300     # all cases of one stage
memory_gib = 4          # what the submission's processes may hold
processes = 24
)";

}  // namespace

Scheme parse_scheme(const std::string& text, const std::string& name) {
  Scheme scheme;
  for (const Stage& stage : kStages) scheme.points[stage.id] = kDefaultPoints;
  scheme.groups = default_groups();
  scheme.gate = {"tiny"};
  toml::table file;
  try {
    file = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw UsageError(name + ":" + std::to_string(error.source().begin.line) + ": " +
                     std::string(error.description()));
  }
  Table root(file, "", name);
  double version = 0;
  root.number("version", 1, 1, version);
  if (version != 1) throw UsageError(name + ": the line `version = 1` is missing");
  scheme.full = root.word("set", {"quick", "full"}, "full") == "full";
  root.words("gate", group_names(), scheme.gate);
  scheme.whole_groups = root.word("count", {"cases", "groups"}, "cases") == "groups";
  root.boolean("show_hidden_names", scheme.show_hidden_names);
  with_table(root, file, "points", name,
             [&](Table& table) { table.numbers(stage_ids(), 1e6, scheme.points); });
  with_table(root, file, "groups", name,
             [&](Table& table) { table.numbers(group_names(), 1e6, scheme.groups); });
  with_table(root, file, "performance", name, [&](Table& table) {
    table.number("share", 0, 1, scheme.performance_share);
    scheme.performance_shape =
        table.word("shape", {"A", "B", "B16384", "B1024", "B256", "C", "C1024"}, "A");
    table.number("full_points_at", 0.01, 1e3, scheme.full_points_ratio);
    table.number("no_points_at", 0.01, 1e4, scheme.no_points_ratio);
  });
  with_table(root, file, "cost", name, [&](Table& table) {
    table.number("share", 0, 1, scheme.cost_share);
    table.number("max_of_reference", 1, 1e3, scheme.max_of_reference);
    table.number("max_sectors_per_request", 0.1, 32, scheme.max_sectors_per_request);
    table.number("max_bank_conflicts", 0, 1e12, scheme.max_bank_conflicts);
    table.number("max_bytes_ratio", 0.1, 1e6, scheme.max_bytes_ratio);
  });
  with_table(root, file, "limits", name, [&](Table& table) {
    double processes = scheme.processes;
    table.number("compile_seconds", 5, 3600, scheme.build.seconds);
    table.number("compile_gib", 0.5, 1024, scheme.build.memory_gib);
    table.number("stage_seconds", 5, 36000, scheme.stage_seconds);
    table.number("memory_gib", 0.1, 1024, scheme.memory_gib);
    table.number("processes", 4, 4096, processes);
    scheme.processes = static_cast<int>(processes);
  });
  root.finish();
  check_sense(scheme, name);
  return scheme;
}

Scheme read_scheme(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file)) {
    throw UsageError("there is no " + file.string() + "; `drill grade --init` writes one");
  }
  return parse_scheme(driver::read_file(file), file.string());
}

std::string scheme_text(const std::vector<const Stage*>& stages) {
  std::string text =
      R"(# How `drill grade` turns verdicts into points. Every line may be left out: what stands here is the
# default. A word that drill does not know is an error.
version = 1

# "full": every case in forward and reversed thread order, with other data, and in a captured graph.
# "quick": each case once, as `drill mN` does; three times as fast.
set = "full"

# A stage gets no points unless every case of these groups passes: a kernel that returns at once
# passes a few cases too ("no tokens", refused arguments). [] for none.
gate = ["tiny"]

# "cases": a group gives points in proportion to its passed cases. "groups": all or nothing.
count = "cases"

# Whether a student's page names hidden cases ("hidden/t37"), or only counts them.
show_hidden_names = false

# Points of each stage. A stage that was not handed in gets 0, with the reason.
[points]
)";
  for (const Stage* stage : stages) {
    text += std::string(stage->id) + " = 20    # " + stage->title + "\n";
  }
  text += R"(
# How a stage's points are shared among its groups of cases: weights, not percentages. Groups that a
# stage does not have, or that cannot run on this machine, do not count. Hidden cases exist only with
# --secret or --secret-file.
[groups]
tiny = 1
edge = 4
random = 2
refused = 1
far = 1
hidden = 3
)";
  return text + kShares + kLimits;
}

}  // namespace moe::grade
