// params.hpp - how a part of the program declares its settings, once.
//
// The struct that uses a setting owns it: it holds the value, with its default, and declares name, unit, range and
// meaning in one `visit_params` function. Everything else is a visitor: the config file reader, the command line, the
// environment, `--help`, `config show` and the documents. None of them knows a setting by name.
//
//   struct PrefetchParams {
//     std::int64_t depth = 4;
//     double timeout_ms = 250;
//     void visit_params(ParamVisitor& visitor) {
//       visitor.integer({"depth", "Requests fetched ahead."}, depth, {0, 64});
//       visitor.real({"timeout_ms", "Longest wait for one fetch."}, timeout_ms, {1, 60'000});
//     }
//   };
//
// Names are snake_case and carry their unit; the flag of `horizon_steps` is `--horizon-steps`.
// Threads: a visit is a plain function call on the caller's thread; the objects are not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute {

struct ParamInfo {
  std::string_view name;
  std::string_view doc;   // one sentence for a user, ends with a full stop
  bool required = false;  // a config file that leaves it out is refused
  bool secret = false;    // never printed
};

// Both ends are allowed values.
template <class T>
struct ParamRange {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
};

// ParamVisitor is told every setting of an object, in declaration order, and may read or change each.
class ParamVisitor {
 public:
  virtual ~ParamVisitor() = default;

  virtual void integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) = 0;
  virtual void real(const ParamInfo& info, double& value, ParamRange<double> range) = 0;
  virtual void flag(const ParamInfo& info, bool& value) = 0;
  virtual void text(const ParamInfo& info, std::string& value) = 0;
  // A text that is one of `options`.
  virtual void choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) = 0;
  // An integer in `range`, or the word "auto", held as `automatic`.
  virtual void integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                               ParamRange<std::int64_t> range) = 0;
  virtual void real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) = 0;
  virtual void texts(const ParamInfo& info, std::vector<std::string>& values) = 0;

  // One or more values, each as its single kind takes them.
  virtual void integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t> range) = 0;
  virtual void reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) = 0;
  virtual void choices(const ParamInfo& info, std::vector<std::string>& values,
                       std::span<const std::string_view> options) = 0;

  // A nested group of settings: `visit` declares its members.
  virtual void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) = 0;

  // A list of groups of settings.
  struct ListAccess {
    std::function<std::size_t()> size;
    std::function<void(std::size_t)> resize;  // new entries have their defaults
    std::function<void(std::size_t, ParamVisitor&)> visit;
  };
  virtual void list(const ParamInfo& info, const ListAccess& access) = 0;

  // The two above for any struct with `visit_params`.
  template <class Params>
  void nested(const ParamInfo& info, Params& params) {
    section(info, [&params](ParamVisitor& inner) { params.visit_params(inner); });
  }
  template <class Params>
  void nested_list(const ParamInfo& info, std::vector<Params>& entries) {
    list(info, {.size = [&entries] { return entries.size(); },
                .resize = [&entries](std::size_t count) { entries.resize(count); },
                .visit = [&entries](std::size_t i, ParamVisitor& inner) { entries[i].visit_params(inner); }});
  }
};

}  // namespace balanceroute
