#include "proxy/abandoned_kv.hpp"

#include <utility>

namespace balanceroute::proxy {

namespace {

constexpr std::size_t kAnswerBytes = 16 * 1024 * 1024;

}  // namespace

net::asio::awaitable<void> drain(AbandonedKv abandoned) {
  const auto placed = co_await abandoned.placement.placed(abandoned.deadline);
  if (!placed) co_return;
  net::HttpRequest request = std::move(abandoned.request);
  const std::string text = std::exchange(request.body, {});
  BodyEdit edit{text, abandoned.body};
  abandoned.fleet.rename_model(edit, abandoned.body.model);
  ask_for_one_token(edit, FirstToken::MayBeLast);
  abandoned.fleet.dialect().edit_decode(edit, abandoned.body, abandoned.handover);
  abandoned.fleet.name_rank(request, edit, placed->worker);
  request.body = std::move(edit).apply();
  auto call =
      co_await abandoned.fleet.clients(abandoned.thread_index).of(placed->worker).send(request, abandoned.deadline);
  if (!call) co_return;
  const auto answer = co_await call->read_all(kAnswerBytes, abandoned.deadline);
  if (answer && call->head().status == 200) (*abandoned.claim)->fetched();
}

}  // namespace balanceroute::proxy
