#include "proxy/decision_check.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <fstream>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/given_settings.hpp"
#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "proxy/decision_log.hpp"

namespace balanceroute::proxy {
namespace {

namespace dom = simdjson::dom;

// A decision as the log has it.
struct Decision {
  RequestId request;
  WorkerId worker;
  int stage;

  friend bool operator==(const Decision&, const Decision&) = default;
};

std::string shown(const std::vector<Decision>& decisions, std::size_t at) {
  if (at >= decisions.size()) return "nothing";
  const Decision& one = decisions[at];
  return fmt::format("request {} on worker {} ({})", one.request.value(), one.worker.value(),
                     to_string(static_cast<Stage>(one.stage)));
}

// Members of one line; a missing or wrong one throws simdjson_error, which check_decisions() turns into a message.
class Line {
 public:
  explicit Line(dom::element line) : line_{line} {}

  [[nodiscard]] bool has(std::string_view name) const { return !line_[name].error(); }
  [[nodiscard]] std::string_view text(std::string_view name) const { return line_[name].get_string().value(); }
  [[nodiscard]] std::int64_t number(std::string_view name) const { return line_[name].get_int64().value(); }
  [[nodiscard]] std::uint64_t natural(std::string_view name) const { return line_[name].get_uint64().value(); }
  [[nodiscard]] bool flag(std::string_view name) const { return line_[name].get_bool().value(); }
  [[nodiscard]] dom::element member(std::string_view name) const { return line_[name].value(); }
  [[nodiscard]] Tokens tokens(std::string_view name) const { return Tokens{number(name)}; }
  template <class Name>
  [[nodiscard]] Name id(std::string_view name) const {
    return Name{static_cast<decltype(Name{}.value())>(natural(name))};
  }
  [[nodiscard]] std::int32_t small(std::string_view name) const { return static_cast<std::int32_t>(number(name)); }

  [[nodiscard]] Request request() const {
    return {.id = id<RequestId>("id"),
            .prompt = tokens("prompt"),
            .generated = tokens("generated"),
            .sequences = small("sequences"),
            .output_limit = tokens("output_limit"),
            .prompt_key = natural("prompt_key"),
            .tenant = id<TenantId>("tenant"),
            .priority = small("priority")};
  }

 private:
  dom::element line_;
};

template <class Params>
void assign(Params& params, dom::element texts) {
  GivenSettings given;
  const dom::object members = texts.get_object().value();
  for (const auto [path, text] : members) {
    given[std::string{path}] = std::string{text.get_string().value()};
  }
  apply_given(given, [&params](ParamVisitor& visitor) { params.visit_params(visitor); });
}

// Again does to a router what the log says, and holds its leases.
//   Invariants  the first Aged of a lease is its start, later ones its progress: the router's policy hears neither
//               more nor less than it did.
class Again {
 public:
  static std::expected<Again, std::string> make(const Line& first) {
    RouterOrigin origin{.fleet = std::string{first.text("fleet")},
                        .seed = first.natural("seed"),
                        .kv_block = first.number("kv_block"),
                        .policy = {},
                        .load_model = {}};
    assign(origin.policy, first.member("policy"));
    assign(origin.load_model, first.member("load_model"));
    auto policy = make_policy(origin.policy, {.load_model = origin.load_model.model()});
    if (!policy) return std::unexpected(policy.error());
    Again again;
    again.load_model_ = origin.load_model.model();
    again.report_.fleet = origin.fleet;
    again.report_.policy = origin.policy.name;
    again.router_ = std::make_unique<Router>(
        origin.fleet, *std::move(policy), origin.seed,
        RouterSettings{.books = {.load_model = origin.load_model.model(), .kv_block = Tokens{origin.kv_block}},
                       .max_wait = origin.policy.max_wait()});
    return again;
  }

  // False at the end of the log.
  bool take(const Line& line) {
    const auto kind = line.text("e");
    if (kind == "end") {
      report_.end = line.text("why");
      return false;
    }
    ++report_.events;
    router_->set_now(std::chrono::nanoseconds{line.number("t")});
    if (kind == "round") return decide(line);
    if (kind == "policy") return change_policy(line);
    if (!change_fleet(kind, line)) change_request(kind, line);
    return true;
  }

  [[nodiscard]] DecisionReport& report() { return report_; }

 private:
  struct Held {
    Lease lease;
    bool started = false;
  };

  bool change_policy(const Line& line) {
    const auto turn = static_cast<router_event::PolicyTurn>(line.small("turn"));
    if (turn == router_event::PolicyTurn::restored) {
      router_->restore();
      report_.policy += ", then " + std::string{router_->policy().name()};
      return true;
    }
    PolicyParams settings;
    assign(settings, line.member("policy"));
    auto policy = make_policy(settings, {.load_model = load_model_});
    if (!policy) {
      report_.difference = "the policy that the log goes on with cannot be made: " + policy.error();
      return false;
    }
    if (turn == router_event::PolicyTurn::degraded) {
      router_->degrade(*std::move(policy), settings);
    } else {
      router_->set_policy(*std::move(policy), settings);
    }
    report_.policy += ", then " + settings.name;
    return true;
  }

  bool change_fleet(std::string_view kind, const Line& line) {
    if (kind == "advance") {
      router_->advance(line.id<GroupId>("group"), Steps{line.number("steps")});
    } else if (kind == "tenant") {
      router_->add_tenant({.weight = line.number("weight"), .quota = line.number("quota")});
    } else if (kind == "terms") {
      router_->set_terms(line.id<TenantId>("tenant"), {.weight = line.number("weight"), .quota = line.number("quota")});
    } else if (kind == "group") {
      router_->add_group(std::string{line.text("name")}, line.flag("barrier"));
    } else if (kind == "worker") {
      (void)router_->add_worker(line.id<GroupId>("group"), std::string{line.text("url")}, line.small("rank"),
                                {line.small("slots"), line.small("slots_ahead")},
                                {.capacity = line.tokens("kv_capacity"), .reserve = line.tokens("kv_reserve")},
                                line.flag("absent") ? WorkerState::absent : WorkerState::ready);
    } else if (kind == "limit") {
      std::optional<std::int32_t> sequences;
      if (line.has("sequences")) sequences = line.small("sequences");
      (void)router_->limit(line.id<WorkerId>("worker"), sequences);
    } else if (kind == "change") {
      change_worker(line.id<WorkerId>("worker"), static_cast<router_event::Change>(line.small("change")));
    } else {
      return false;
    }
    return true;
  }

  // What could not be done then cannot be done now.
  void change_worker(WorkerId worker, router_event::Change change) {
    using enum router_event::Change;
    switch (change) {
      case drain:
        (void)router_->drain(worker);
        return;
      case resume:
        (void)router_->resume(worker);
        return;
      case restart:
        (void)router_->restart(worker);
        return;
      case declare_dead:
        (void)router_->declare_dead(worker);
        return;
      case remove:
        (void)router_->remove(worker);
        return;
    }
  }

  void change_request(std::string_view kind, const Line& line) {
    const auto request = line.id<RequestId>("id");
    if (kind == "submit") {
      ++report_.requests;
      (void)router_->submit(line.request());
    } else if (kind == "learn") {
      router_->learn(line.request(), line.tokens("ended_with"),
                     line.flag("finished") ? LeaseEnd::finished : LeaseEnd::cut);
    } else if (kind == "withdraw") {
      router_->withdraw(request);
    } else if (kind == "adopt") {
      auto lease = router_->adopt(line.id<WorkerId>("worker"), line.request());
      if (lease) held_[request] = {*std::move(lease)};
    } else {
      change_lease(kind, request, line.tokens("generated"));
    }
  }

  void change_lease(std::string_view kind, RequestId request, Tokens generated) {
    const auto found = held_.find(request);
    if (found == held_.end()) return;  // its end is told once more after its worker's
    Held& held = found->second;
    if (kind == "age") {
      if (std::exchange(held.started, true)) {
        held.lease.progress(generated);
      } else {
        held.lease.started();
      }
      return;
    }
    if (kind == "finish_one") return held.lease.finish_one(generated);
    if (kind == "finish") held.lease.finish(generated);
    held_.erase(found);
  }

  bool decide(const Line& line) {
    ++report_.rounds;
    std::vector<Decision> then;
    const dom::array admitted = line.member("admitted").get_array().value();
    for (const auto each : admitted) {
      then.push_back({RequestId{each.at(0).get_uint64().value()},
                      WorkerId{static_cast<std::uint32_t>(each.at(1).get_uint64().value())},
                      static_cast<int>(each.at(2).get_int64().value())});
    }
    std::vector<Decision> now;
    for (Admission& admission : line.has("group") ? router_->round(line.id<GroupId>("group")) : router_->round_all()) {
      now.push_back({admission.request.id, admission.worker, static_cast<int>(admission.stage)});
      held_[admission.request.id] = {std::move(admission.lease)};
    }
    report_.admissions += std::ssize(now);
    if (now == then) return true;
    std::size_t at = 0;
    while (at < now.size() && at < then.size() && now[at] == then[at]) ++at;
    report_.difference = fmt::format("round {}, admission {}: the log has {}, the router decides {}", report_.rounds,
                                     at + 1, shown(then, at), shown(now, at));
    return false;
  }

  LoadModel load_model_;
  std::unique_ptr<Router> router_;
  std::unordered_map<RequestId, Held> held_;  // goes before the router
  DecisionReport report_;
};

std::unexpected<std::string> fault_in(const std::string& path, std::int64_t number, std::string_view what) {
  return std::unexpected(fmt::format("{}:{}: {}", path, number, what));
}

}  // namespace

std::expected<DecisionReport, std::string> check_decisions(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string text;
  if (!std::getline(file, text)) return std::unexpected(path + ": cannot be read, or is empty");
  dom::parser parser;
  std::int64_t number = 1;
  try {
    const Line first{parser.parse(text).value()};
    if (first.number("balanceroute_decisions") != 1) return fault_in(path, 1, "expected a decision log of version 1");
    auto again = Again::make(first);
    if (!again) return fault_in(path, 1, again.error());
    again->report().end = "cut";
    // A last line without its end was being written when the router was ended.
    while (std::getline(file, text) && !file.eof()) {
      ++number;
      if (!again->take(Line{parser.parse(text).value()})) break;
    }
    return std::move(again->report());
  } catch (const simdjson::simdjson_error& error) {
    return fault_in(path, number, std::string{"not a line of a decision log: "} + error.what());
  }
}

}  // namespace balanceroute::proxy
