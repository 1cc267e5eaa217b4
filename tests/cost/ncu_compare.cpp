// ncu_compare COURSE: the cost cards of two solutions and three bad variants beside what Nsight
// Compute counts for the same case on this machine's GPU. One command, from the course's folder:
//   tests/cost/ncu_compare
// which builds what this needs. Prints a table; ends with 1 where sectors a request or bank
// conflicts differ by more than 10 %, or L2's bytes order the variants in another way.
#include <unistd.h>

#include <sys/stat.h>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
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

// cp.async of 16 bytes goes past L1.
constexpr const char* kMetrics =
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,"
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,"
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum,"
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum,"
    "sm__sass_l1tex_t_requests_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum,"
    "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum,"
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum,"
    "lts__t_bytes.sum,dram__bytes_read.sum,dram__bytes_write.sum";

struct Measured {
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
  std::ofstream(launcher) << "#!/bin/sh\nexec ncu --csv --page raw --launch-count 1 --log-file "
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
                       tree / "ncu.report"};
  command.limit_s = 300;
  const Outcome outcome = run_process(command);
  std::map<std::string, double> values = parse_ncu(read_file(log));
  if (values.empty()) {
    throw std::runtime_error("ncu counted nothing for " + std::string(stage.id) + " " +
                             kernel.name + ": " + read_file(log) + outcome.output);
  }
  const auto sum = [&values](const char* what) {
    const std::string prefix = "l1tex__t_" + std::string(what) + "_pipe_lsu_mem_global_op_";
    return values[prefix + "ld.sum"] + values[prefix + "st.sum"] +
           values["sm__sass_l1tex_t_" + std::string(what) +
                  "_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"];
  };
  return {sum("sectors") / std::max(1.0, sum("requests")),
          values["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"], values["lts__t_bytes.sum"],
          values["dram__bytes_read.sum"] + values["dram__bytes_write.sum"]};
}

CostCard card_of(const Course& course, const Stage& stage, const Kernel& kernel) {
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
  return run.card;
}

bool near(double modelled, double measured) {
  return std::abs(modelled - measured) <= 0.1 * std::max(1.0, measured);
}

int compare(const Course& course) {
  bool all_near = true;
  std::map<std::string, std::vector<std::pair<double, double>>> bytes;  // of a stage, in order
  std::printf(
      "| stage | kernel | sectors a request: card | ncu | bank conflicts: card | ncu | "
      "KB in DRAM: card | KB at L2: ncu | KB in DRAM: ncu |\n|%s\n",
      "---|---|---|---|---|---|---|---|---|");
  for (const Kernel& kernel : kKernels) {
    const Stage& stage = *find_stage(kernel.stage);
    const CostCard card = card_of(course, stage, kernel);
    const Measured gpu = measure_on_gpu(course, stage, kernel);
    const double dram = static_cast<double>(card.dram_read + card.dram_written);
    const auto conflicts = static_cast<double>(card.bank_conflicts());
    std::printf("| %s | %s | %.2f | %.2f | %.0f | %.0f | %.1f | %.1f | %.1f |\n", kernel.stage,
                kernel.name, card.sectors_per_request(), gpu.sectors_per_request, conflicts,
                gpu.conflicts, dram / 1e3, gpu.l2_bytes / 1e3, gpu.dram_bytes / 1e3);
    all_near = all_near && near(card.sectors_per_request(), gpu.sectors_per_request) &&
               near(conflicts, gpu.conflicts);
    bytes[kernel.stage].emplace_back(dram, gpu.dram_bytes);
  }
  for (const auto& [stage, pairs] : bytes) {
    for (std::size_t i = 1; i < pairs.size(); ++i) {
      const bool card_rises = pairs[i].first > 1.02 * pairs[0].first;
      const bool gpu_rises = pairs[i].second > 1.02 * pairs[0].second;
      if (card_rises == gpu_rises) continue;
      std::printf("%s: the card and the GPU order its kernels by bytes in another way\n",
                  stage.c_str());
      all_near = false;
    }
  }
  std::printf("%s\n", all_near ? "within 10 %" : "NOT within 10 %");
  return all_near ? 0 : 1;
}

}  // namespace
}  // namespace moe::driver

int main(int argc, char** argv) {
  try {
    if (argc == 2) return moe::driver::compare({argv[1]});
    std::fprintf(stderr, "ncu_compare COURSE\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ncu_compare: %s\n", error.what());
  }
  return 2;
}
