#include "proxy/worker_routes.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/admin_request.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/snapshots.hpp"
#include "proxy/state_report.hpp"

namespace balanceroute::proxy {
namespace {

constexpr std::array<std::string_view, 3> kPaths{"/workers", "/workers/drain", "/workers/ready"};

// The body of POST /workers.
struct AddCommand {
  std::string fleet;
  std::string group;
  WorkerParams worker;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({"fleet", "Name of the fleet; may be left out where there is one."}, fleet);
    visitor.text({"group", "Name of the group that the worker joins.", true}, group);
    worker.visit_params(visitor);
  }
};

// The body of the other commands, or their query.
struct SelectCommand {
  static constexpr std::int64_t kAny = -1;

  std::string fleet;
  std::string url;
  std::int64_t rank = kAny;
  std::int64_t id = kAny;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({"fleet", "Name of the fleet; may be left out where there is one."}, fleet);
    visitor.text({"url", "Address of the worker, as GET /workers lists it."}, url);
    visitor.integer({"rank", "Its rank behind that address; all of them if it is left out."}, rank,
                    {kAny, std::numeric_limits<std::int32_t>::max()});
    visitor.integer({"id", "Its number, as GET /workers lists it."}, id,
                    {kAny, std::numeric_limits<std::uint32_t>::max()});
  }

  [[nodiscard]] WorkerSelector selector() const {
    WorkerSelector which;
    if (!url.empty()) which.url = url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
    if (rank != kAny) which.rank = static_cast<std::int32_t>(rank);
    if (id != kAny) which.id = static_cast<std::uint32_t>(id);
    return which;
  }
};

std::expected<SelectCommand, ApiError> read_selection(const net::HttpRequest& request) {
  std::string text = request.body;
  if (!request.query().empty()) {
    auto converted = json_of_query(request.query());
    if (!converted) return std::unexpected(converted.error());
    text = *std::move(converted);
  }
  auto command = read_admin_body<SelectCommand>(text);
  if (command && command->url.empty() && command->id == SelectCommand::kAny) {
    return std::unexpected(bad_admin_request("neither url nor id is given: expected one of them, to say which worker"));
  }
  return command;
}

// The workers that a command was for, or why it was refused.
net::HttpResponse answer_of(int status, const Membership::Workers& workers, const FleetSnapshot& snapshot) {
  if (!workers) return error_response(workers.error());
  return workers_response(status, {snapshot}, *workers);
}

}  // namespace

bool WorkerRoutes::has(std::string_view path) {
  return std::ranges::find(kPaths, path) != kPaths.end();
}

net::asio::awaitable<void> WorkerRoutes::serve(net::HttpExchange& exchange, std::string_view path) {
  const std::string& method = exchange.request().method;
  const bool root = path == "/workers";
  const std::string_view allowed = root ? "GET, POST, DELETE" : "POST";
  if (root && (method == "GET" || method == "HEAD")) {
    co_await list(exchange);
  } else if (root && method == "POST") {
    co_await add(exchange);
  } else if (method == (root ? "DELETE" : "POST")) {
    co_await change(exchange, path);
  } else {
    co_await exchange.respond(wrong_method(allowed));
  }
}

net::asio::awaitable<void> WorkerRoutes::list(net::HttpExchange& exchange) {
  const auto snapshots = co_await take_snapshots(exchange.thread(), service_.fleets, false);
  co_await exchange.respond(workers_response(200, snapshots));
}

net::asio::awaitable<void> WorkerRoutes::add(net::HttpExchange& exchange) {
  const auto asked = for_fleet(service_, read_admin_body<AddCommand>(exchange.request().body));
  if (!asked) {
    co_await exchange.respond(error_response(asked.error()));
    co_return;
  }
  const auto specs = ranks_of(asked->command.worker);
  if (!specs) {
    co_await exchange.respond(error_response(bad_admin_request(specs.error())));
    co_return;
  }
  struct Outcome {
    Membership::Workers workers;
    bool fresh;
    FleetSnapshot snapshot;
  };
  const auto join = [group = asked->command.group, specs = *specs](Fleet& to) {
    const std::size_t before = to.worker_count();
    auto workers = to.membership().add(group, specs);
    return Outcome{std::move(workers), to.worker_count() > before, to.snapshot(false)};
  };
  const auto outcome = co_await ask_fleet(exchange.thread(), *asked->fleet, join);
  const int status = outcome.fresh ? 201 : 200;
  co_await exchange.respond(answer_of(status, outcome.workers, outcome.snapshot));
}

net::asio::awaitable<void> WorkerRoutes::change(net::HttpExchange& exchange, std::string_view path) {
  const auto asked = for_fleet(service_, read_selection(exchange.request()));
  if (!asked) {
    co_await exchange.respond(error_response(asked.error()));
    co_return;
  }
  struct Outcome {
    Membership::Workers workers;
    FleetSnapshot snapshot;
  };
  const auto obey = [path = std::string{path}, which = asked->command.selector()](Fleet& of) {
    Membership& membership = of.membership();
    auto workers = path == "/workers/drain"   ? membership.drain(which)
                   : path == "/workers/ready" ? membership.resume(which)
                                              : membership.remove(which);
    return Outcome{std::move(workers), of.snapshot(false)};
  };
  const auto outcome = co_await ask_fleet(exchange.thread(), *asked->fleet, obey);
  co_await exchange.respond(answer_of(200, outcome.workers, outcome.snapshot));
}

}  // namespace balanceroute::proxy
