// history_source.hpp - the router's own history as a request stream, and as a file that other tools read.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <iosfwd>
#include <string>

#include "core/params.hpp"
#include "history/record.hpp"
#include "trace/reader.hpp"
#include "trace/trace.hpp"

namespace balanceroute::trace {

// HistorySource says which part of which history is read.
struct HistorySource {
  static constexpr std::int64_t kAll = 0;  // "auto"

  std::string history;  // the file; empty: none
  std::string history_fleet;
  std::int64_t history_days = kAll;

  [[nodiscard]] bool given() const { return !history.empty(); }
  void visit_params(ParamVisitor& visitor);
};

// Calls use(record) for each that it says, in order of arrival. The error names the file.
[[nodiscard]] std::expected<void, std::string> each_record(const HistorySource& source,
                                                           const std::function<void(const history::Record&)>& use);

// Every request that has generated something, as long as it was, whether it came to its end or was cut: that is what
// the engines did. One with several answers counts as so many requests.
[[nodiscard]] std::expected<Trace, std::string> read_history(const HistorySource& source,
                                                             const ReadOptions& options = {});

// The same in the columns of Azure's traces; how many rows.
[[nodiscard]] std::expected<std::int64_t, std::string> write_azure_csv(const HistorySource& source, std::ostream& out);

// One of the two that users may give, and only one: a trace in a file, or a history.
[[nodiscard]] std::expected<Trace, std::string> read_either(const std::string& trace, const HistorySource& history,
                                                            const ReadOptions& options = {});

}  // namespace balanceroute::trace
