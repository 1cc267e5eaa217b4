// `drill notes mN [section]`: the note of a stage in the terminal.
#include <algorithm>

#include "driver/markdown.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

// By slug, else the only one that starts so.
const Section* find_section(const std::vector<Section>& sections, const std::string& name) {
  const std::string wanted = section_slug(name);
  const Section* begins = nullptr;
  for (const Section& section : sections) {
    if (section.slug == wanted) return &section;
    if (begins == nullptr && section.slug.rfind(wanted, 0) == 0) begins = &section;
  }
  return begins;
}

// The section with those below it.
std::string text_of(const std::vector<Section>& sections, const Section& first) {
  std::string text;
  for (const Section* section = &first; section <= &sections.back(); ++section) {
    if (section != &first && section->level <= first.level) break;
    text += std::string(static_cast<std::size_t>(section->level), '#') + " " + section->title +
            "\n" + section->body;
  }
  return text;
}

int say_no_section(const std::vector<Section>& sections, const NotesOptions& options) {
  std::vector<std::string> slugs;
  for (const Section& section : sections) {
    if (section.level > 1) slugs.push_back(section.slug);
  }
  const std::string near = nearest(options.section, slugs, 1 + options.section.size() / 3);
  std::string text =
      "the note of " + options.stage + " has no section " + shell_quoted(options.section) + ".";
  if (!near.empty()) text += " Did you mean: drill notes " + options.stage + " " + near;
  say(wrapped("drill: ", text));
  say(wrapped("sections  ", name_list(slugs, std::string::npos)));
  return static_cast<int>(Verdict::kUsage);
}

}  // namespace

int show_notes(const Course& course, const NotesOptions& options) {
  const Stage& stage = *find_stage(options.stage);
  const std::string file = "content/" + std::string(stage.stem) + ".md";
  const std::string note = read_file(course.root / file);
  if (note.empty()) {
    say("drill: " + file + " is missing\n");
    return static_cast<int>(Verdict::kUsage);
  }
  const Paint paint = Paint::for_stdout();
  RenderOptions render;
  render.answers = options.answers;
  if (options.section.empty()) {
    say(rendered(note, paint, render));
  } else {
    const std::vector<Section> sections = sections_of(note);
    const Section* section = find_section(sections, options.section);
    if (section == nullptr) return say_no_section(sections, options);
    say(rendered(text_of(sections, *section), paint, render));
  }
  const bool folds = note.find("<details>") != std::string::npos && !options.answers;
  const std::string section = options.section.empty() ? "" : " " + shell_quoted(options.section);
  say("file     " + file + "\n");
  if (folds) say(wrapped("answers  ", "drill notes " + options.stage + section + " --answers"));
  return 0;
}

}  // namespace moe::driver
