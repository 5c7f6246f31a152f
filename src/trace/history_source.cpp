#include "trace/history_source.hpp"

#include <filesystem>
#include <ostream>

#include "core/request.hpp"
#include "history/reader.hpp"

namespace balanceroute::trace {
namespace {

bool generated_something(const history::Record& record) {
  return record.prompt > Tokens{0} && record.prompt <= kMaxTokens && record.output > Tokens{0} &&
         record.output_each() <= kMaxTokens;
}

TraceRequest request_of(const history::Record& record, history::UnixTime start) {
  TraceRequest request{.arrival = record.arrived - start, .prompt = record.prompt, .output = record.output_each()};
  for (const std::uint64_t key : {record.opening_key, record.prompt_key}) {
    if (key != 0) request.prefix_blocks.push_back(static_cast<std::int64_t>(key));
  }
  return request;
}

// As Azure writes it, to the millisecond.
void write_time(std::ostream& out, history::UnixTime time) {
  const auto padded = [&out](std::int64_t value, int digits) {
    const std::string text = std::to_string(value);
    for (int i = static_cast<int>(text.size()); i < digits; ++i) out << '0';
    out << text;
  };
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss of_day{time - day};
  padded(static_cast<int>(date.year()), 4);
  out << '-';
  padded(static_cast<unsigned>(date.month()), 2);
  out << '-';
  padded(static_cast<unsigned>(date.day()), 2);
  out << ' ';
  padded(of_day.hours().count(), 2);
  out << ':';
  padded(of_day.minutes().count(), 2);
  out << ':';
  padded(of_day.seconds().count(), 2);
  out << '.';
  padded(of_day.subseconds().count(), 3);
}

}  // namespace

void HistorySource::visit_params(ParamVisitor& visitor) {
  visitor.text({"history", "The router's history of finished requests (setting history.path), instead of a trace."},
               history);
  visitor.text({"history_fleet", "Fleet whose requests are taken from the history; empty takes all."}, history_fleet);
  visitor.integer_or_auto({"history_days", "Days that are taken, back from the last request; auto is all."},
                          history_days, kAll, {1, 36'500});
}

std::expected<void, std::string> each_record(const HistorySource& source,
                                             const std::function<void(const history::Record&)>& use) {
  auto reader = history::Reader::open(source.history);
  if (!reader) return std::unexpected(reader.error().message);
  history::Selection selection{.fleet = source.history_fleet};
  if (source.history_days != HistorySource::kAll) {
    const auto summary = reader->summary(selection);
    if (!summary) return std::unexpected(source.history + ": " + summary.error().message);
    if (summary->last_arrival) selection.since = *summary->last_arrival - std::chrono::days{source.history_days};
  }
  const auto done = reader->each(selection, use);
  if (!done) return std::unexpected(source.history + ": " + done.error().message);
  return {};
}

std::expected<Trace, std::string> read_history(const HistorySource& source, const ReadOptions& options) {
  Trace trace{.name = std::filesystem::path{source.history}.filename().string(), .kind = TraceKind::history};
  std::optional<history::UnixTime> start;
  const auto read = each_record(source, [&](const history::Record& record) {
    if (!generated_something(record)) return;
    if (!start) start = record.arrived;
    const TraceRequest request = request_of(record, *start);
    for (std::int32_t i = 0; i < record.sequences && std::ssize(trace.requests) < options.limit; ++i) {
      trace.requests.push_back(request);
    }
  });
  if (!read) return std::unexpected(read.error());
  if (trace.requests.empty()) {
    return std::unexpected(source.history + ": has no request that generated anything" +
                           (source.history_fleet.empty() ? "" : " at the fleet " + source.history_fleet));
  }
  return trace;
}

std::expected<std::int64_t, std::string> write_azure_csv(const HistorySource& source, std::ostream& out) {
  std::int64_t rows = 0;
  out << "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const auto read = each_record(source, [&](const history::Record& record) {
    if (!generated_something(record)) return;
    for (std::int32_t i = 0; i < record.sequences; ++i, ++rows) {
      write_time(out, record.arrived);
      out << ',' << record.prompt.count() << ',' << record.output_each().count() << '\n';
    }
  });
  if (!read) return std::unexpected(read.error());
  return rows;
}

std::expected<Trace, std::string> read_either(const std::string& trace, const HistorySource& history,
                                              const ReadOptions& options) {
  if (trace.empty() != history.given()) return std::unexpected("expected one of --trace and --history");
  return history.given() ? read_history(history, options) : read_trace(trace, options);
}

}  // namespace balanceroute::trace
