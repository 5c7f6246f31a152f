#include "proxy/decision_log.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/setting_visitor.hpp"

namespace balanceroute::proxy {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::string_view kEndAtLimit = R"({"e":"end","why":"limit"})";
constexpr std::string_view kEndAtStop = R"({"e":"end","why":"stop"})";

// SettingTexts collects the values of settings as texts, by path.
class SettingTexts final : public SettingVisitor {
 public:
  Json values = Json::object();

  void texts(const ParamInfo& /*info*/, std::vector<std::string>& /*values*/) override {}  // neither has any

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override { values[path_of(info)] = setting.value; }
};

template <class Params>
Json texts_of(Params params) {
  SettingTexts visitor;
  params.visit_params(visitor);
  return std::move(visitor.values);
}

std::string first_line(const RouterOrigin& origin) {
  return Json{{"balanceroute_decisions", 1},
              {"fleet", origin.fleet},
              {"seed", origin.seed},
              {"kv_block", origin.kv_block},
              {"policy", texts_of(origin.policy)},
              {"load_model", texts_of(origin.load_model)}}
      .dump();
}

std::string quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// EventText appends the members of one event.
struct EventText {
  std::string& out;

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
  }
  void add_request(const Request& request) {
    add(R"("id":{},"prompt":{},"generated":{},"sequences":{},"output_limit":{},"prompt_key":{},"tenant":{},"priority":{})",
        request.id.value(), request.prompt.count(), request.generated.count(), request.sequences,
        request.output_limit.count(), request.prompt_key, request.tenant.value(), request.priority);
  }

  void operator()(const router_event::TenantAdded& event) {
    add(R"("e":"tenant","weight":{},"quota":{})", event.terms.weight, event.terms.quota);
  }
  void operator()(const router_event::TermsChanged& event) {
    add(R"("e":"terms","tenant":{},"weight":{},"quota":{})", event.tenant.value(), event.terms.weight,
        event.terms.quota);
  }
  void operator()(const router_event::GroupAdded& event) {
    add(R"("e":"group","name":{},"barrier":{})", quoted(event.name), event.barrier);
  }
  void operator()(const router_event::WorkerAdded& event) {
    add(R"("e":"worker","group":{},"url":{},"rank":{},"slots":{},"slots_ahead":{},"kv_capacity":{},"kv_reserve":{},"absent":{})",
        event.group.value(), quoted(event.url), event.rank, event.slots.decoding, event.slots.ahead,
        event.kv.capacity.count(), event.kv.reserve.count(), event.state == WorkerState::absent);
  }
  void operator()(const router_event::WorkerChanged& event) {
    add(R"("e":"change","worker":{},"change":{})", event.worker.value(), static_cast<int>(event.change));
  }
  void operator()(const router_event::WorkerLimited& event) {
    add(R"("e":"limit","worker":{})", event.worker.value());
    if (event.sequences) add(R"(,"sequences":{})", *event.sequences);
  }
  void operator()(const router_event::Submitted& event) {
    add(R"("e":"submit",)");
    add_request(event.request);
  }
  void operator()(const router_event::Withdrawn& event) { add(R"("e":"withdraw","id":{})", event.request.value()); }
  void operator()(const router_event::Adopted& event) {
    add(R"("e":"adopt","worker":{},)", event.worker.value());
    add_request(event.request);
  }
  void operator()(const router_event::Aged& event) {
    add(R"("e":"age","id":{},"generated":{})", event.request.value(), event.generated.count());
  }
  void operator()(const router_event::Narrowed& event) {
    add(R"("e":"finish_one","id":{},"generated":{})", event.request.value(), event.generated.count());
  }
  void operator()(const router_event::Ended& event) {
    add(R"("e":"{}","id":{},"generated":{})", event.how == LeaseEnd::finished ? "finish" : "cut", event.request.value(),
        event.generated.count());
  }
  void operator()(const router_event::Learned& event) {
    add(R"("e":"learn","finished":{},"ended_with":{},)", event.how == LeaseEnd::finished, event.generated.count());
    add_request(event.request);
  }
  void operator()(const router_event::Advanced& event) {
    add(R"("e":"advance","group":{},"steps":{})", event.group.value(), event.steps.count());
  }
  void operator()(const router_event::Decided& event) {
    add(R"("e":"round",)");
    if (event.group) add(R"("group":{},)", event.group->value());
    add(R"("admitted":[)");
    std::string_view comma;
    for (const Admission& admission : event.admissions) {
      add("{}[{},{},{}]", std::exchange(comma, ","), admission.request.id.value(), admission.worker.value(),
          static_cast<int>(admission.stage));
    }
    add("]");
  }
  void operator()(const router_event::PolicyChanged& event) {
    add(R"("e":"policy","turn":{},"policy":{})", static_cast<int>(event.turn), texts_of(event.settings).dump());
  }
};

}  // namespace

void DecisionLogParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"path",
                "File for everything that the fleet's router hears and decides, as sizes without content; "
                "written anew at each start. Empty writes none."},
               path);
  visitor.integer({"limit_mb", "The log ends when it has so many MiB."}, limit_mb, {1, 1'048'576});
}

std::expected<std::unique_ptr<DecisionLog>, std::string> DecisionLog::open(const DecisionLogParams& params,
                                                                           const RouterOrigin& origin) {
  std::ofstream file{params.path, std::ios::binary | std::ios::trunc};
  if (!file) return std::unexpected("decision_log.path = " + params.path + ": cannot be written");
  std::unique_ptr<DecisionLog> log{
      new DecisionLog{std::move(file), static_cast<std::size_t>(params.limit_mb * kMebibyte)}};
  log->write(first_line(origin));
  return log;
}

DecisionLog::~DecisionLog() {
  if (!ended_) file_ << kEndAtStop << '\n';
}

void DecisionLog::heard(std::chrono::nanoseconds now, const RouterEvent& event) {
  if (ended_) return;
  line_.clear();
  fmt::format_to(std::back_inserter(line_), R"({{"t":{},)", now.count());
  std::visit(EventText{line_}, event);
  line_ += '}';
  write(line_);
}

void DecisionLog::write(std::string_view line) {
  if (line.size() + kEndAtLimit.size() + 2 > left_bytes_) {
    file_ << kEndAtLimit << '\n' << std::flush;
    ended_ = true;
    return;
  }
  left_bytes_ -= line.size() + 1;
  file_ << line << '\n';
  ended_ = !file_;
}

}  // namespace balanceroute::proxy
