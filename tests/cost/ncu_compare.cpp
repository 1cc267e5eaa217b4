// The cost cards of two solutions and three bad variants beside what Nsight Compute counts for the
// same case on this machine's GPU. tests/cost/ncu_compare builds what this needs and starts it:
//   ncu_compare COURSE [--cards FILE | --against FILE]
// --cards only writes the figures of the cards, --against reads them. Prints a table; ends with 1
// where sectors a request or bank conflicts differ by more than 10 %, or DRAM's bytes order the
// variants in another way.
#include <unistd.h>

#include <sys/stat.h>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/cost/measure.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

struct Kernel {
  const char* stage;
  const char* name;    // "solution", or a variant of tests/cost/
  const char* symbol;  // what ncu profiles
};

constexpr Kernel kKernels[] = {
    {"m2", "solution", "grouped_gemm_kernel"},
    {"m2", "strided_loads", "grouped_gemm_kernel"},
    {"m2", "conflicting_layout", "grouped_gemm_kernel"},
    {"m4", "solution", "grouped_gemm_kernel"},
    {"m4", "unordered_tiles", "grouped_gemm_kernel"},
};

// op_ld counts cp.async as well; ldgsts alone is for the line of counters.
constexpr const char* kMetrics =
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,"
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,"
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,"
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,"
    "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum,"
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,"
    "lts__t_bytes.sum,dram__bytes_read.sum,dram__bytes_write.sum";

// Of a kernel's cost card.
struct Counted {
  double sectors_per_request = 0;
  double conflicts = 0;
  double dram_bytes = 0;
};

struct Measured {
  std::string counters;  // of each kind of global access, as ncu has them
  double sectors_per_request = 0;
  double conflicts = 0;
  double l2_bytes = 0;
  double dram_bytes = 0;
};

std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// The first kernel of `ncu --csv --page raw`: a line of names, one of units, one of values.
std::map<std::string, double> parse_ncu(const std::string& text) {
  std::map<std::string, double> values;
  std::vector<std::string> names;
  std::vector<std::string> units;
  for (const std::string& line : split_lines(text)) {
    if (line.empty() || line[0] != '"') continue;
    const std::vector<std::string> fields = csv_fields(line);
    if (names.empty()) {
      names = fields;
    } else if (units.empty()) {
      units = fields;
    } else {
      for (std::size_t i = 0; i < std::min(names.size(), fields.size()); ++i) {
        std::string digits;
        for (const char c : fields[i]) digits += c == ',' ? "" : std::string(1, c);
        const double scale = i >= units.size()     ? 1
                             : units[i] == "Kbyte" ? 1e3
                             : units[i] == "Mbyte" ? 1e6
                             : units[i] == "Gbyte" ? 1e9
                                                   : 1;
        values[names[i]] = std::atof(digits.c_str()) * scale;
      }
      break;
    }
  }
  return values;
}

Measured measure_on_gpu(const Course& course, const Stage& stage, const Kernel& kernel) {
  const std::filesystem::path tree = course.tree("cuda");
  const bool is_solution = std::string(kernel.name) == "solution";
  const std::filesystem::path runner = tree / (is_solution ? "runners" : "cost_variants") /
                                       (stage.stem + ("." + std::string(kernel.name)));
  const std::filesystem::path log = tree / "ncu.csv";
  const std::filesystem::path launcher = tree / "ncu.sh";
  std::error_code ignored;
  std::filesystem::remove(log, ignored);
  std::ofstream(launcher) << "#!/bin/sh\nexec ncu --csv --page raw --clock-control none "
                             "--launch-count 1 --log-file "
                          << shell_quoted(log) << " --kernel-name regex:" << kernel.symbol
                          << " --metrics " << kMetrics << " " << shell_quoted(runner) << "\n";
  chmod(launcher.c_str(), 0755);
  Command command;
  command.arguments = {test_path(course, stage),
                       "--runner",
                       launcher,
                       "--side",
                       is_solution ? "solution" : "mine",
                       "--backend",
                       "cuda",
                       "--case",
                       find_cost_case(stage.id)->name,
                       "--seed",
                       "1",
                       "--report",
                       tree / "ncu.report",
                       "--case-limit-ms",  // above 10 s the child gets time to write ncu's log
                       "120000"};
  command.limit_s = 300;
  const Outcome outcome = run_process(command);
  std::map<std::string, double> values = parse_ncu(read_file(log));
  if (values.empty()) {
    throw std::runtime_error("ncu counted nothing for " + std::string(stage.id) + " " +
                             kernel.name + ": " + read_file(log) + outcome.output);
  }
  const auto sum = [&values](const char* what) {
    const std::string prefix = "l1tex__t_" + std::string(what) + "_pipe_lsu_mem_global_op_";
    return values[prefix + "ld.sum"] + values[prefix + "st.sum"];
  };
  std::string counters;
  for (const auto& [name, value] : values) {
    const auto of = name.find("_mem_global_op_");
    const auto dot = name.rfind('.');
    if (of == std::string::npos || name.substr(dot) != ".sum") continue;
    const bool sectors = name.find("_t_sectors_") != std::string::npos;
    counters += " " + name.substr(of + 15, dot - of - 15) + (sectors ? " sectors " : " requests ") +
                std::to_string(std::llround(value)) + ",";
  }
  return {counters, sum("sectors") / std::max(1.0, sum("requests")),
          values["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"], values["lts__t_bytes.sum"],
          values["dram__bytes_read.sum"] + values["dram__bytes_write.sum"]};
}

Counted card_of(const Course& course, const Stage& stage, const Kernel& kernel) {
  const std::filesystem::path tree = course.tree(kTracedTree);
  const bool is_solution = std::string(kernel.name) == "solution";
  CostProgram program;
  program.test = test_path(course, stage);
  program.runner = tree / (is_solution ? "runners" : "cost_variants") /
                   (stage.stem + ("." + std::string(kernel.name)));
  program.counts = tree / "ncu_compare.json";
  program.report = tree / "ncu_compare.report";
  program.side = is_solution ? "solution" : "mine";
  const CostRun run =
      measure_cost(program, *find_cost_case(stage.id), find_gpu_sheet("H200")->l2_bytes);
  if (!run.trouble.empty()) throw std::runtime_error(run.trouble);
  return {run.card.sectors_per_request(), static_cast<double>(run.card.bank_conflicts()),
          static_cast<double>(run.card.dram_read + run.card.dram_written)};
}

std::string key_of(const Kernel& kernel) {
  return std::string(kernel.stage) + " " + kernel.name;
}

void write_cards(const Course& course, const std::filesystem::path& file) {
  nlohmann::ordered_json cards;
  for (const Kernel& kernel : kKernels) {
    const Counted card = card_of(course, *find_stage(kernel.stage), kernel);
    cards[key_of(kernel)] = {{"sectors_per_request", card.sectors_per_request},
                             {"bank_conflicts", card.conflicts},
                             {"dram_bytes", card.dram_bytes}};
  }
  std::ofstream out(file);
  out << cards.dump(2) << "\n";
  if (!out.flush()) throw std::runtime_error("can't write " + file.string());
}

// Of each kernel, in their order; without a file they are counted now.
std::vector<Counted> read_cards(const Course& course, const std::filesystem::path& file) {
  std::vector<Counted> cards;
  if (file.empty()) {
    for (const Kernel& kernel : kKernels) {
      cards.push_back(card_of(course, *find_stage(kernel.stage), kernel));
    }
    return cards;
  }
  const auto json = nlohmann::json::parse(read_file(file));
  for (const Kernel& kernel : kKernels) {
    const auto& card = json.at(key_of(kernel));
    cards.push_back(
        {card.at("sectors_per_request"), card.at("bank_conflicts"), card.at("dram_bytes")});
  }
  return cards;
}

bool near(double modelled, double measured) {
  return std::abs(modelled - measured) <= 0.1 * std::max(1.0, measured);
}

using BytesOfStages = std::map<std::string, std::vector<std::pair<double, double>>>;

// Does a variant move more than its solution, by the card and on the GPU?
bool ordered_alike(const BytesOfStages& bytes) {
  bool alike = true;
  for (const auto& [stage, pairs] : bytes) {
    for (std::size_t i = 1; i < pairs.size(); ++i) {
      const bool card_rises = pairs[i].first > 1.02 * pairs[0].first;
      const bool gpu_rises = pairs[i].second > 1.02 * pairs[0].second;
      if (card_rises == gpu_rises) continue;
      std::printf("%s: the card and the GPU order its kernels by bytes in another way\n",
                  stage.c_str());
      alike = false;
    }
  }
  return alike;
}

int compare(const Course& course, const std::filesystem::path& file) {
  const std::vector<Counted> cards = read_cards(course, file);
  bool all_near = true;
  BytesOfStages bytes;
  std::string counters;
  std::printf(
      "| stage | kernel | sectors a request: card | ncu | bank conflicts: card | ncu | "
      "KB in DRAM: card | KB at L2: ncu | KB in DRAM: ncu |\n|%s\n",
      "---|---|---|---|---|---|---|---|---|");
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const Kernel& kernel = kKernels[i];
    const Counted& card = cards[i];
    const Measured gpu = measure_on_gpu(course, *find_stage(kernel.stage), kernel);
    std::printf("| %s | %s | %.2f | %.2f | %.0f | %.0f | %.1f | %.1f | %.1f |\n", kernel.stage,
                kernel.name, card.sectors_per_request, gpu.sectors_per_request, card.conflicts,
                gpu.conflicts, card.dram_bytes / 1e3, gpu.l2_bytes / 1e3, gpu.dram_bytes / 1e3);
    std::fflush(stdout);
    counters += key_of(kernel) + ":" + gpu.counters + "\n";
    all_near = all_near && near(card.sectors_per_request, gpu.sectors_per_request) &&
               near(card.conflicts, gpu.conflicts);
    bytes[kernel.stage].emplace_back(card.dram_bytes, gpu.dram_bytes);
  }
  all_near = ordered_alike(bytes) && all_near;
  std::printf("%s", counters.c_str());
  std::printf("%s\n", all_near ? "within 10 %" : "NOT within 10 %");
  return all_near ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  const std::string option = arguments.size() == 3 ? arguments[1] : "";
  if (arguments.size() == 1) return compare({arguments[0]}, {});
  if (option == "--against") return compare({arguments[0]}, arguments[2]);
  if (option == "--cards") {
    write_cards({arguments[0]}, arguments[2]);
    return 0;
  }
  std::fprintf(stderr, "ncu_compare COURSE [--cards FILE | --against FILE]\n");
  return 2;
}

}  // namespace
}  // namespace moe::driver

int main(int argc, char** argv) {
  try {
    return moe::driver::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ncu_compare: %s\n", error.what());
  }
  return 2;
}
