// The grader's main: options of `drill grade`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "driver/grade/grading.h"
#include "driver/help_text.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"

namespace {

class GradeHelp : public moe::driver::HelpText {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "usage: drill grade [OPTIONS]\n";
  }
};

void add_options(CLI::App& app, moe::grade::GradeOptions& options) {
  app.add_option("--submissions", options.submissions,
                 "a folder, zip or git checkout for each student")
      ->type_name("DIR");
  app.add_option("--out", options.out, "for reports; the same folder again: grading goes on")
      ->type_name("DIR");
  app.add_option("--stages", options.stages, "such as m1,m2; all")->type_name("LIST");
  app.add_option("--format", options.formats, "of csv,json,junit,gradescope,actions; all")
      ->type_name("LIST");
  app.add_option("--grading", options.scheme, "points and limits; grading.toml if there is one")
      ->type_name("FILE");
  app.add_flag("--init", options.init, "only write a grading.toml, with comments");
  CLI::Option* secret =
      app.add_option("--secret", options.secret, "a hidden seed, and hidden cases made from it");
  secret->type_name("TEXT");
  app.add_option("--secret-file", options.secret_file, "the same, from a file")
      ->type_name("FILE")
      ->excludes(secret);
  app.add_option("--jobs", options.jobs, "submissions at a time; as many as cores")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_flag("--quick", options.quick, "each case once, not every case in every way");
  app.add_flag("--gpu", options.gpu, "on the GPU, with points for speed");
  app.add_flag("--trust", options.trust, "go on where no wall around submissions works");
}

// The command line of a process can be read by everybody; the secret must not stand there.
void wipe_secret(int argc, char** argv) {
  constexpr const char* kOption = "--secret";
  constexpr const char* kAssigned = "--secret=";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], kOption) == 0 && i + 1 < argc) {
      std::memset(argv[i + 1], '*', std::strlen(argv[i + 1]));
    } else if (std::strncmp(argv[i], kAssigned, std::strlen(kAssigned)) == 0) {
      char* value = argv[i] + std::strlen(kAssigned);
      std::memset(value, '*', std::strlen(value));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  moe::driver::install_interrupt_handlers();
  moe::grade::GradeOptions options;
  CLI::App app{"Grade a class: every student's stages, behind a wall, with reports.",
               "drill grade"};
  app.formatter(std::make_shared<GradeHelp>());
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(moe::driver::Verdict::kUsage);
  }
  wipe_secret(argc, argv);
  try {
    return moe::grade::run_grading(moe::driver::find_course(), options);
  } catch (const moe::driver::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "drill grade: %s\n", error.what());
    return static_cast<int>(moe::driver::Verdict::kFault);
  }
}
