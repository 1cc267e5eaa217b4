// What must be there before the first submission: trees, prebuilt objects, the clean tree, and
// proof that our own solutions pass on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "driver/grade/class_run.h"
#include "driver/grade/grading.h"

namespace moe::grade {

class Preparation {
 public:
  Preparation(const driver::Course& course,
              const driver::Backend& backend,
              const Scheme& scheme,
              Confinement& confinement,
              std::filesystem::path out)
      : course_(course),
        backend_(backend),
        scheme_(scheme),
        confinement_(confinement),
        out_(std::move(out)) {}

  // Throws std::runtime_error where the course itself does not build or pass here.
  Prepared run(const std::vector<const Stage*>& stages,
               const Workshop& workshop,
               Examiner& examiner,
               std::uint64_t seed,
               const std::function<void(const std::string&)>& show);

  std::filesystem::path clean_tree() const { return out_ / "work" / "course"; }
  const std::string& run_id() const { return run_id_; }

 private:
  void build(const std::vector<const Stage*>& stages);
  std::vector<CaseResult> solution_cases(const Recipe& recipe,
                                         const Workshop& workshop,
                                         Examiner& examiner,
                                         const std::string& key);

  const driver::Course& course_;
  const driver::Backend& backend_;
  const Scheme& scheme_;
  Confinement& confinement_;
  std::filesystem::path out_;
  std::string run_id_;
};

// From --secret or --secret-file: a seed that nobody else knows.
std::optional<std::uint64_t> read_secret(const GradeOptions& options);

}  // namespace moe::grade
