// snapshots.hpp - the state of every fleet, asked from the deciding thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "proxy/fleet.hpp"

namespace balanceroute::proxy {

// What `question` answers of a fleet; it is asked on the deciding thread. For coroutines on `home`.
template <class Question>
auto ask_fleet(net::IoThread& home, Fleet& fleet, Question question)
    -> net::asio::awaitable<std::invoke_result_t<Question&, Fleet&>> {
  using Answer = std::invoke_result_t<Question&, Fleet&>;
  struct Reply {
    explicit Reply(net::IoThread& thread) : ready{thread} {}
    net::Event ready;
    std::optional<Answer> answer;
  };
  auto reply = std::make_shared<Reply>(home);
  fleet.dispatcher().decider().dispatch([&home, &fleet, reply, question = std::move(question)]() mutable {
    home.dispatch([reply, answer = question(fleet)]() mutable {
      reply->answer = std::move(answer);
      reply->ready.set();
    });
  });
  // A wait that was cancelled has no answer; the next one throws.
  while (!reply->answer) co_await reply->ready.wait();
  co_return std::move(*reply->answer);
}

// The same of each fleet, in order.
template <class Question>
auto ask_fleets(net::IoThread& home, std::vector<std::unique_ptr<Fleet>>& fleets, Question question)
    -> net::asio::awaitable<std::vector<std::invoke_result_t<Question&, Fleet&>>> {
  std::vector<std::invoke_result_t<Question&, Fleet&>> answers;
  for (const auto& fleet : fleets) {
    auto answer = co_await ask_fleet(home, *fleet, question);
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

// One snapshot for each fleet, in order; for coroutines on `home`.
net::asio::awaitable<std::vector<FleetSnapshot>> take_snapshots(net::IoThread& home,
                                                                std::vector<std::unique_ptr<Fleet>>& fleets,
                                                                bool with_leases);

// Decode workers that take admissions.
std::size_t ready_workers(const std::vector<FleetSnapshot>& snapshots);

}  // namespace balanceroute::proxy
