// history_command.cpp - `history stats` and `history export`: what a router's history holds, and the same as a trace.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>

#include "cli/command_group.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "history/reader.hpp"
#include "sim/text_table.hpp"
#include "trace/history_source.hpp"

namespace balanceroute::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const std::optional<history::UnixTime>& time) {
  if (!time) return "-";
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::chrono::system_clock::to_time_t(*time)));
}

Json unix_ms(const std::optional<history::UnixTime>& time) {
  return time ? Json(time->time_since_epoch().count()) : Json(nullptr);
}

std::string table_of(const history::Summary& summary) {
  sim::TextTable table;
  table.add({"fleet and outcome", "requests", "answers", "prompt tokens", "output tokens", "output each"});
  for (const history::OutcomeSummary& one : summary.outcomes) {
    const double each =
        one.sequences > 0 ? static_cast<double>(one.output_tokens) / static_cast<double>(one.sequences) : 0;
    table.add({one.fleet + " " + one.outcome, fmt::format("{}", one.requests), fmt::format("{}", one.sequences),
               fmt::format("{}", one.prompt_tokens), fmt::format("{}", one.output_tokens),
               fmt::format("{:.1f}", each)});
  }
  return fmt::format("{} requests from {} to {}\n{} different prompts, {:.1f} MiB, schema version {}\n\n{}",
                     summary.requests, shown(summary.first_arrival), shown(summary.last_arrival), summary.prompts,
                     static_cast<double>(summary.file_bytes) / (1 << 20), summary.schema_version, table.text());
}

std::string json_of(const history::Summary& summary) {
  Json outcomes = Json::array();
  for (const history::OutcomeSummary& one : summary.outcomes) {
    outcomes.push_back({{"fleet", one.fleet},
                        {"outcome", one.outcome},
                        {"requests", one.requests},
                        {"sequences", one.sequences},
                        {"prompt_tokens", one.prompt_tokens},
                        {"output_tokens", one.output_tokens}});
  }
  const Json all{{"requests", summary.requests},
                 {"prompts", summary.prompts},
                 {"first_arrival_unix_ms", unix_ms(summary.first_arrival)},
                 {"last_arrival_unix_ms", unix_ms(summary.last_arrival)},
                 {"file_bytes", summary.file_bytes},
                 {"schema_version", summary.schema_version},
                 {"outcomes", std::move(outcomes)}};
  return all.dump(2) + "\n";
}

void add_source(CLI::App& app, trace::HistorySource& source) {
  app.add_option("file", source.history, "The history: the file that the setting history.path names.")
      ->required()
      ->type_name("FILE");
  app.add_option("--fleet", source.history_fleet, "Only requests of this fleet.")->type_name("NAME");
}

class HistoryStats final : public Command {
 public:
  void declare(CLI::App& app) override {
    add_source(app, source_);
    app.add_option("--json", json_, "File to write the figures to as JSON; - is standard output.")->type_name("FILE");
  }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({json_}); !writable) return writable;
    auto reader = history::Reader::open(source_.history);
    if (!reader) return bad_usage(reader.error().message);
    const auto summary = reader->summary({.fleet = source_.history_fleet});
    if (!summary) return run_failed(source_.history + ": " + summary.error().message);
    if (auto written = write_output(json_, json_of(*summary)); !written) return written;
    words_beside({json_}) << table_of(*summary);
    return {};
  }

 private:
  trace::HistorySource source_;
  std::string json_;
};

class HistoryExport final : public Command {
 public:
  void declare(CLI::App& app) override {
    add_source(app, source_);
    app.add_option("--days", source_.history_days, "Only the last days, back from the last request.")
        ->type_name("DAYS")
        ->check(CLI::Range(1, 36'500));
    app.add_option("--csv", csv_, "File to write to, in the columns of Azure's traces; - is standard output.")
        ->type_name("FILE")
        ->capture_default_str();
  }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({csv_}); !writable) return writable;
    std::ostringstream text;
    const auto rows = trace::write_azure_csv(source_, text);
    if (!rows) return bad_usage(rows.error());
    if (auto written = write_output(csv_, std::move(text).str()); !written) return written;
    words_beside({csv_}) << *rows << " requests\n";
    return {};
  }

 private:
  trace::HistorySource source_;
  std::string csv_{kStandardOutput};
};

template <class C>
std::unique_ptr<Command> make() {
  return std::make_unique<C>();
}

constexpr auto kCommands = std::to_array<CommandEntry>({
    {"stats", "Say what a history holds.", make<HistoryStats>},
    {"export", "Write a history as a trace that simulators read.", make<HistoryExport>},
});

}  // namespace

std::unique_ptr<Command> make_history_command() {
  return std::make_unique<CommandGroup>(kCommands);
}

}  // namespace balanceroute::cli
