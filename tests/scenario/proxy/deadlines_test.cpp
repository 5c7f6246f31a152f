// Each phase of a request has its deadline, and all of them together have one; on a clock that the test moves.
#include <gtest/gtest.h>

#include <string>

#include "support/clocked_router.hpp"
#include "support/fake_worker.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing_support::chunk;
using testing_support::FakeWorker;
using testing_support::hangs_after;
using testing_support::kDone;
using testing_support::kFinish;
using testing_support::start_stream;

const std::string kRole = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";

net::asio::awaitable<void> hang(net::HttpExchange& exchange) {
  net::Event never{exchange.thread()};
  co_await never.wait();
}

net::asio::awaitable<void> prefill_well(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(
      200, R"({"choices":[{"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1},)"
           R"("kv_transfer_params":{"remote_block_ids":[1]}})"));
}

class Deadlines : public ClockedRouter {
 protected:
  // Far apart, so that what a test waits for is plain.
  static constexpr double kShort = 1'000;
  static constexpr double kLong = 3'600'000;

  static Change only(double TimeoutParams::* deadline) {
    return [deadline](ServeParams& params) {
      for (double TimeoutParams::* one :
           {&TimeoutParams::request_ms, &TimeoutParams::arrival_ms, &TimeoutParams::prefill_ms,
            &TimeoutParams::admission_ms, &TimeoutParams::first_byte_ms, &TimeoutParams::stream_idle_ms}) {
        params.timeouts.*one = one == deadline ? kShort : kLong;
      }
      params.health.hold_after = 1;
    };
  }
  static Change prefilled_by(const FakeWorker& instance, double TimeoutParams::* deadline) {
    return [port = instance.port(), deadline](ServeParams& params) {
      only(deadline)(params);
      params.fleets[0].dialect = "vllm_nixl";
      params.fleets[0].prefill.instances = {{.url = url_at(port)}};
      params.fleets[0].prefill.on_prefill_loss = "503";
      params.fleets[0].prefill.retries = 0;
      params.fleets[0].prefill.lease_ms = kLong;
      params.fleets[0].prefill.hold_limit_ms = kLong - 1;
    };
  }
  void expect_late(const std::string& answer, std::string_view code) {
    EXPECT_EQ(status_in(answer), 504) << answer;
    EXPECT_NE(answer.find(code), std::string::npos) << answer;
    EXPECT_NE(answer.find("x-should-retry: false"), std::string::npos) << answer;
    EXPECT_TRUE(all_is_given_back());
    EXPECT_EQ(metric("balanceroute_request_finished_total{outcome=\"timeout\"}"), 1);
  }
  // Whether time was up when it had to be, and not before.
  std::string in_due_time(Answer& answer) {
    pass(999ms);
    EXPECT_NE(answer.wait_for(20ms), std::future_status::ready);
    return of(answer);
  }
};

TEST_F(Deadlines, OfTheArrivalQueue) {
  FakeWorker prefill{hang};
  FakeWorker decode{hang};
  serve({decode.port()}, [&](ServeParams& params) {
    prefilled_by(prefill, &TimeoutParams::arrival_ms)(params);
    params.fleets[0].prefill.kv_high_water_tokens = 1;
  });
  Answer first = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return prefill.requests().size() == 1; }));
  Answer second = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return ledger()["prefill"]["requests_waiting"] == 1; }));
  const std::string late = of(second, 10ms);
  EXPECT_EQ(status_in(late), 504) << late;
  EXPECT_NE(late.find("arrival_timeout"), std::string::npos) << late;
  EXPECT_EQ(prefill.requests().size(), 1u);
  service_.reset();
}

TEST_F(Deadlines, OfAPrefill) {
  FakeWorker prefill{hang};
  FakeWorker decode{hang};
  serve({decode.port()}, prefilled_by(prefill, &TimeoutParams::prefill_ms));
  Answer answer = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return prefill.requests().size() == 1; }));
  expect_late(in_due_time(answer), "prefill_timeout");
  EXPECT_TRUE(decode.requests().empty());
}

TEST_F(Deadlines, OfThePool) {
  FakeWorker decode{hang};
  serve({decode.port()}, [](ServeParams& params) {
    only (&TimeoutParams::admission_ms)(params);
    params.fleets[0].groups[0].slots = 1;
  });
  Answer first = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return decode.requests().size() == 1; }));
  Answer second = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  const std::string late = in_due_time(second);
  EXPECT_EQ(status_in(late), 504) << late;
  EXPECT_NE(late.find("admission_timeout"), std::string::npos) << late;
  service_.reset();
}

// Law: a decode worker that does not begin is charged for it, and the instance that did its part is not; a role alone
// is no beginning.
TEST_F(Deadlines, OfTheFirstToken) {
  FakeWorker prefill{prefill_well};
  FakeWorker silent{hangs_after(kRole)};
  FakeWorker other{hangs_after(kRole)};  // the last one is never held back
  serve({silent.port(), other.port()}, prefilled_by(prefill, &TimeoutParams::first_byte_ms));
  Answer answer = ask_later(kChat, kStream);
  ASSERT_TRUE(soon([&] { return silent.requests().size() + other.requests().size() == 1; }));
  const std::string late = in_due_time(answer);
  EXPECT_EQ(status_in(late), 504) << late;
  EXPECT_NE(late.find("worker_timeout"), std::string::npos) << late;
  EXPECT_EQ(silent.requests().size() + other.requests().size(), 1u);  // time that is over is not tried again
  const std::size_t asked = silent.requests().empty() ? 1 : 0;
  EXPECT_EQ(worker(asked)["health"], "held");
  EXPECT_EQ(ledger()["prefill"]["instances"][0]["failures_in_a_row"], 0);
}

// Law: a worker that falls silent within its answer ends it with an error, and each event gives it new time.
TEST_F(Deadlines, BetweenEvents) {
  std::atomic<int> events{1};
  FakeWorker decode{[&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    start_stream(exchange);
    net::Event tick{exchange.thread()};
    for (int sent = 0;;) {
      while (sent < events) exchange.write(chunk("e" + std::to_string(sent++)));
      const net::WaitResult waited = co_await tick.wait(std::chrono::steady_clock::now() + 1ms);
      if (waited != net::WaitResult::Timeout) co_return;
    }
  }};
  serve({decode.port()}, only(&TimeoutParams::stream_idle_ms));
  testing_support::RawClient client{service_->client_port()};
  client.send(testing_support::http_request("POST", kChat, kStream));
  client.read_until("e0");
  for (int i = 1; i < 4; ++i) {
    pass(900ms);
    ++events;
    client.read_until("\"e" + std::to_string(i));
  }
  std::future<std::string> rest = std::async(std::launch::async, [&] { return client.read_to_end(); });
  const std::string answer = of(rest, 10ms);
  EXPECT_NE(answer.find("stream_timeout"), std::string::npos) << answer;
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n"));
  EXPECT_TRUE(all_is_given_back());
}

// Law: a request that has used up its whole time ends, whatever it waits for, and its worker is not to blame.
TEST_F(Deadlines, OfTheWholeRequest) {
  FakeWorker decode{hangs_after(chunk("begun"))};
  FakeWorker other{hangs_after(chunk("begun"))};
  serve({decode.port(), other.port()}, only(&TimeoutParams::request_ms));
  Answer stream = ask_later(kChat, kStream);
  ASSERT_TRUE(soon([&] { return decode.requests().size() + other.requests().size() == 1; }));
  const std::string begun = of(stream, 10ms);
  EXPECT_EQ(status_in(begun), 200) << begun;
  EXPECT_NE(begun.find("request_timeout"), std::string::npos) << begun;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(worker(static_cast<std::size_t>(i))["health"], "up");
}

TEST_F(Deadlines, WholeTimeCountsWhileItWaits) {
  FakeWorker decode{hang};
  serve({decode.port()}, [](ServeParams& params) {
    only (&TimeoutParams::request_ms)(params);
    params.fleets[0].groups[0].slots = 1;
  });
  Answer first = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return decode.requests().size() == 1; }));
  Answer second = ask_later(kText, kWhole);
  ASSERT_TRUE(soon([&] { return ledger()["requests_waiting"] == 1; }));
  for (Answer* answer : {&first, &second}) {
    const std::string late = of(*answer, 10ms);
    EXPECT_EQ(status_in(late), 504) << late;
    EXPECT_NE(late.find("request_timeout"), std::string::npos) << late;
  }
  EXPECT_TRUE(all_is_given_back());
}

}  // namespace
}  // namespace balanceroute::proxy
