#include "cli/command_line.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/nearest.hpp"

namespace balanceroute::cli {
namespace {

constexpr const char* kVersion = "balanceroute " BALANCEROUTE_VERSION;

// HelpFormatter breaks the lines of long descriptions.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { label("SUBCOMMAND", "COMMAND"); }

  std::string make_option_desc(const CLI::Option* option) const override {
    constexpr std::size_t kLineWidth = 110;
    const std::size_t width = kLineWidth - get_column_width();
    std::istringstream words{option->get_description()};
    std::string text;
    std::size_t used = 0;
    for (std::string word; words >> word;) {
      const bool fits = used + 1 + word.size() <= width;
      if (!text.empty()) text += fits ? ' ' : '\n';
      used = fits ? used + 1 + word.size() : word.size();
      text += word;
    }
    return text;
  }
};

void add_version(CLI::App& app) {
  app.set_version_flag("--version", kVersion, "Print the version and exit.");
  app.set_help_flag("-h,--help", "Print this help and exit.");
  for (CLI::App* member : app.get_subcommands({})) add_version(*member);
}

// The command that the arguments chose, as deep as they went, with its name as it was typed.
struct Chosen {
  const CLI::App* app;
  std::string name;
};

Chosen chosen_in(const CLI::App& program) {
  Chosen chosen{&program, program.get_name()};
  while (!chosen.app->get_subcommands().empty()) {
    chosen.app = chosen.app->get_subcommands().back();
    chosen.name += " " + chosen.app->get_name();
  }
  return chosen;
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> commands;
  for (const CLI::App* member : app.get_subcommands({})) commands.push_back(member->get_name());
  return commands;
}

// What to say about arguments that nothing takes.
std::string about_strays(const std::vector<std::string>& strays, const CLI::App& command) {
  const auto is_flag = [](const std::string& argument) { return argument.starts_with('-'); };
  const auto flag = std::ranges::find_if(strays, is_flag);
  if (flag != strays.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    return name + ": unknown flag; " + suggestion(name, flags_of(command));
  }
  const std::vector<std::string> commands = commands_of(command);
  if (commands.empty()) return strays.front() + ": unexpected argument";
  return strays.front() + ": unknown command; " + suggestion(strays.front(), commands);
}

std::string about_missing_command(const CLI::App& command) {
  std::string names;
  for (const std::string& name : commands_of(command)) names += (names.empty() ? "" : ", ") + name;
  return "no command: expected one of " + names;
}

// A flag that takes one value got none, or several. The library's words for it start with the flag.
std::string about_mismatch(std::string_view words) {
  const std::string flag{words.substr(0, words.find(':'))};
  const bool several = words.find("received") != std::string_view::npos;
  return flag + (several ? ": given more than once" : ": a value is missing");
}

std::string what_is_wrong(const CLI::App& program, const CLI::App& command, const CLI::ParseError& error) {
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool stray = required || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  // What is there and wrong explains what is missing: `--ulr` before "--url is required".
  const std::vector<std::string> strays = program.remaining(true);
  if (stray && !strays.empty()) return about_strays(strays, command);
  if (required && !commands_of(command).empty()) return about_missing_command(command);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return about_mismatch(error.what());
  return error.what();
}

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const Chosen chosen = chosen_in(program);
  return what_is_wrong(program, *chosen.app, error) + "\nTry '" + chosen.name + " --help'.";
}

}  // namespace

std::expected<void, Failure> run_command_line(Command& command, int argc, const char* const* argv) {
  CLI::App program{"Router for data-parallel LLM decoding.", "balanceroute"};
  program.formatter(std::make_shared<HelpFormatter>());  // before there are commands, which copy it
  command.declare(program);
  add_version(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    program.exit(asked, std::cout, std::cout);
    return {};
  } catch (const CLI::ParseError& error) {
    return bad_usage(explain(program, error));
  }
  return command.run();
}

}  // namespace balanceroute::cli
