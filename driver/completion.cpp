#include "driver/completion.h"

#include "driver/course.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> stage_ids() {
  std::vector<std::string> ids;
  for (const Stage& stage : kStages) ids.emplace_back(stage.id);
  return ids;
}

std::string words_after(const VerbWords& verb) {
  std::vector<std::string> words = verb.takes_stage ? stage_ids() : std::vector<std::string>();
  if (verb.name == "completion") words = {"bash", "zsh"};
  words.insert(words.end(), verb.options.begin(), verb.options.end());
  return joined(words, " ");
}

// The lines of a case statement that both shells read.
std::string cases(const std::vector<VerbWords>& verbs, const VerbWords& stages) {
  std::string text =
      "    " + joined(stage_ids(), "|") + ") choices='" + words_after(stages) + "' ;;\n";
  for (const VerbWords& verb : verbs) {
    text += "    " + verb.name + ") choices='" + words_after(verb) + "' ;;\n";
  }
  return text;
}

std::string bash_script(const std::vector<VerbWords>& verbs, const VerbWords& stages) {
  std::vector<std::string> names = stage_ids();
  for (const VerbWords& verb : verbs) names.push_back(verb.name);
  return "# Completion of drill for bash. In ~/.bashrc: source <(drill completion bash)\n"
         "_drill() {\n"
         "  local choices='" +
         joined(names, " ") +
         " --help'\n"
         "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
         "    choices=''\n"
         "    case ${COMP_WORDS[1]} in\n" +
         cases(verbs, stages) +
         "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$choices\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _drill drill ./drill\n";
}

// In single quotes, which an apostrophe must leave; ':' separates a name from what it does.
std::string described(const std::string& name, const std::string& summary) {
  std::string plain;
  for (const char c : summary) plain += c == '\'' ? R"('\'')" : std::string(1, c);
  return "    '" + name + ":" + plain + "'\n";
}

std::string zsh_script(const std::vector<VerbWords>& verbs, const VerbWords& stages) {
  std::string described_verbs;
  for (const Stage& stage : kStages) described_verbs += described(stage.id, stage.title);
  for (const VerbWords& verb : verbs) described_verbs += described(verb.name, verb.summary);
  return "#compdef drill ./drill\n"
         "# Completion of drill for zsh. In ~/.zshrc, after compinit:\n"
         "#   source <(drill completion zsh)\n"
         "_drill() {\n"
         "  local -a verbs=(\n" +
         described_verbs +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe 'verb' verbs\n"
         "    return\n"
         "  fi\n"
         "  local verb=${words[2]}\n"
         "  local choices=''\n"
         "  case $verb in\n" +
         cases(verbs, stages) +
         "  esac\n"
         "  compadd -- ${=choices}\n"
         "}\n"
         "compdef _drill drill ./drill\n";
}

}  // namespace

std::string completion_script(const std::string& shell,
                              const std::vector<VerbWords>& verbs,
                              const VerbWords& stages) {
  if (shell == "bash") return bash_script(verbs, stages);
  if (shell == "zsh") return zsh_script(verbs, stages);
  return {};
}

}  // namespace moe::driver
