#include "proxy/live_feed.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "proxy/json_delta.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/snapshots.hpp"

namespace balanceroute::proxy {

// Is one of the viewers as long as it lives.
class LiveFeed::Presence {
 public:
  Presence(LiveFeed& feed, std::shared_ptr<LiveViewer> viewer) : feed_{feed}, viewer_{std::move(viewer)} {
    feed_.thread_.dispatch([&feed = feed_, viewer = viewer_] { feed.join(viewer); });
  }
  ~Presence() {
    feed_.thread_.dispatch([&feed = feed_, viewer = viewer_] { feed.leave(viewer); });
    feed_.viewers_count_.fetch_sub(1);
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

 private:
  LiveFeed& feed_;
  std::shared_ptr<LiveViewer> viewer_;
};

LiveFeed::LiveFeed(ServiceContext& service, const std::atomic<bool>& draining)
    : service_{service},
      draining_{draining},
      thread_{service.threads.at(0)},
      boot_{std::to_string(std::random_device{}())},
      start_{service.clock.now()},
      joined_{thread_},
      decisions_(nlohmann::json::array()),
      fresh_decisions_(nlohmann::json::array()),
      remembered_{start_ - kIdle} {}

void LiveFeed::join(std::shared_ptr<LiveViewer> viewer) {
  viewers_.push_back(std::move(viewer));
  if (viewers_.size() == 1) joined_.set();  // with others there the next look is near
}

void LiveFeed::leave(const std::shared_ptr<LiveViewer>& viewer) {
  std::erase(viewers_, viewer);
}

net::asio::awaitable<void> LiveFeed::serve(net::HttpExchange& exchange) {
  if (viewers_count_.fetch_add(1) >= kMostViewers) {
    viewers_count_.fetch_sub(1);
    const ApiError full{503, "server_error", "too_many_viewers",
                        std::to_string(kMostViewers) + " dashboards are open: close one"};
    co_await exchange.respond(error_response(full));
    co_return;
  }
  const auto viewer = std::make_shared<LiveViewer>(exchange.thread());
  const Presence presence{*this, viewer};
  net::HttpResponse head{.status = 200, .headers = {}, .body = {}};
  head.headers.add("Content-Type", "text/event-stream; charset=utf-8");
  head.headers.add("Cache-Control", "no-store");
  exchange.start(head);
  for (;;) {
    const net::WaitResult waited = co_await viewer->wake.wait();
    if (waited != net::WaitResult::Set) co_return;
    viewer->wake.reset();
    const bool there = co_await pass_on(exchange, *viewer);
    if (!there) co_return;
    if (viewer->lost()) thread_.dispatch([viewer] { viewer->wants_state = true; });
  }
}

net::asio::awaitable<bool> LiveFeed::pass_on(net::HttpExchange& exchange, LiveViewer& viewer) {
  while (const LiveViewer::Text text = viewer.next()) {
    net::WriteStatus status = exchange.write(*text);
    if (status == net::WriteStatus::Full) status = co_await exchange.drained();
    if (status != net::WriteStatus::Ok) co_return false;
  }
  co_return true;
}

net::asio::awaitable<void> LiveFeed::write() {
  serials_.resize(service_.fleets.size());
  for (;;) {
    const auto looks = co_await look();
    const net::TimePoint now = service_.clock.now();
    remember(looks, now);
    if (!viewers_.empty()) tell(looks, now);
    joined_.reset();
    const bool watched = !viewers_.empty();
    const net::WaitResult waited = co_await joined_.wait(now + (watched ? kPeriod : kIdle));
    if (waited == net::WaitResult::Cancelled) co_return;
  }
}

net::asio::awaitable<std::vector<FleetLook>> LiveFeed::look() {
  const bool watched = !viewers_.empty();
  std::vector<FleetLook> looks;
  for (std::size_t f = 0; f < service_.fleets.size(); ++f) {
    const auto question = [watched, after = serials_[f]](Fleet& fleet) { return look_at(fleet, after, watched); };
    auto answer = co_await ask_fleet(thread_, *service_.fleets[f], question);
    looks.push_back(std::move(answer));
    if (!looks.back().decisions.empty()) serials_[f] = looks.back().decisions.back().serial;
  }
  co_return looks;
}

void LiveFeed::remember(const std::vector<FleetLook>& looks, net::TimePoint now) {
  for (const FleetLook& look : looks) {
    for (nlohmann::json& one : decisions_json(look, start_)) {
      fresh_decisions_.push_back(one);
      decisions_.push_back(std::move(one));
    }
  }
  for (nlohmann::json* list : {&decisions_, &fresh_decisions_}) {
    if (list->size() <= DecisionTrail::kKept) continue;
    list->erase(list->begin(), list->end() - static_cast<std::ptrdiff_t>(DecisionTrail::kKept));
  }
  if (now - remembered_ < kIdle) return;
  remembered_ = now;
  recent_ = service_.metrics.recent(now.time_since_epoch());
  history_.add(std::chrono::duration<double>{now - start_}.count(), history_row(service_, looks));
}

void LiveFeed::tell(const std::vector<FleetLook>& looks, net::TimePoint now) {
  nlohmann::json state = live_view(service_, looks, draining_, recent_);
  nlohmann::json change = head(now);
  change["patch"] = json_delta(told_, state);
  if (!fresh_decisions_.empty()) change["decisions"] = std::exchange(fresh_decisions_, nlohmann::json::array());
  told_ = std::move(state);
  const auto delta = std::make_shared<const std::string>(event("delta", change));
  LiveViewer::Text whole;
  for (const auto& viewer : viewers_) {
    const bool wants_state = std::exchange(viewer->wants_state, false);
    if (wants_state && !whole) {
      nlohmann::json all = head(now);
      all["boot"] = boot_;
      all["state"] = told_;
      all["history"] = history_.as_json();
      all["decisions"] = decisions_;
      whole = std::make_shared<const std::string>(event("state", all));
    }
    viewer->home.dispatch(
        [viewer, wants_state, text = wants_state ? whole : delta] { viewer->take(wants_state, text); });
  }
}

nlohmann::json LiveFeed::head(net::TimePoint now) const {
  return {{"now_s", std::round(std::chrono::duration<double, std::milli>{now - start_}.count()) / 1000}};
}

std::string LiveFeed::event(std::string_view name, const nlohmann::json& data) {
  std::string text = "event: ";
  text.append(name).append("\ndata: ");
  text += data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text + "\n\n";
}

}  // namespace balanceroute::proxy
