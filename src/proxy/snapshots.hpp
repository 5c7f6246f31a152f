// snapshots.hpp - the state of every fleet, asked from the deciding thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "proxy/fleet.hpp"

namespace balanceroute::proxy {

// What `question` answers of each fleet, in order; it is asked on the deciding thread. For coroutines on `home`.
template <class Question>
auto ask_fleets(net::IoThread& home, std::vector<std::unique_ptr<Fleet>>& fleets, Question question)
    -> net::asio::awaitable<std::vector<std::invoke_result_t<Question&, Fleet&>>> {
  using Answer = std::invoke_result_t<Question&, Fleet&>;
  struct Reply {
    explicit Reply(net::IoThread& thread) : ready{thread} {}
    net::Event ready;
    Answer answer;
  };
  std::vector<Answer> answers;
  for (const auto& fleet : fleets) {
    auto reply = std::make_shared<Reply>(home);
    fleet->dispatcher().decider().dispatch([&home, asked = fleet.get(), reply, question] {
      home.dispatch([reply, answer = question(*asked)]() mutable {
        reply->answer = std::move(answer);
        reply->ready.set();
      });
    });
    co_await reply->ready.wait();
    answers.push_back(std::move(reply->answer));
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
