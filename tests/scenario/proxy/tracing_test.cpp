// Traces that clients begin or the router does: what engines are told of them, and what a collector gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "support/clocked_router.hpp"
#include "support/fake_worker.hpp"
#include "telemetry/trace_context.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using telemetry::parse_traceparent;
using telemetry::to_hex;
using testing::IsSupersetOf;
using testing::SizeIs;
using testing_support::FakeWorker;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpan = "00f067aa0ba902b7";
const std::string kParent = "traceparent: 00-" + kTrace + "-" + kSpan + "-01\r\n";

net::asio::awaitable<void> answer_well(net::HttpExchange& exchange) {
  co_await exchange.respond(net::json_response(
      200, R"({"choices":[{"text":"x","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}})"));
}

net::HttpHandler answers(int status) {
  return [status](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    co_await exchange.respond(net::json_response(status, "{}"));
  };
}

class Tracing : public ClockedRouter {
 protected:
  void serve_with_collector(std::uint16_t worker, std::uint16_t collector, double ratio = 1) {
    serve({worker}, [&](ServeParams& params) {
      params.tracing.otlp_endpoint = url_at(collector);
      params.tracing.sample_ratio = ratio;
      params.tracing.interval_ms = 10;
    });
  }
  std::string ask_with(const std::string& headers) {
    const std::string request = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + headers +
                                "Content-Length: " + std::to_string(kWhole.size()) + "\r\n\r\n" + kWhole;
    return testing_support::http_exchange(service_->client_port(), request);
  }
  // What the collector has got once that many spans are there.
  std::vector<json> spans(FakeWorker& collector, std::size_t count) {
    std::vector<json> all;
    EXPECT_TRUE(testing_support::soon([&] {
      pass(10ms);
      all = spans_in(collector.requests());
      return all.size() >= count;
    }));
    return all;
  }
  static std::vector<json> spans_in(const std::vector<net::HttpRequest>& requests) {
    std::vector<json> all;
    for (const auto& request : requests) {
      EXPECT_EQ(request.target, "/v1/traces");
      EXPECT_EQ(request.headers.find("Content-Type"), "application/json");
      const json body = json::parse(request.body);
      for (const json& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) all.push_back(span);
    }
    return all;
  }
  static json named(const std::vector<json>& spans, const std::string& name) {
    const auto found = std::ranges::find_if(spans, [&](const json& span) { return span["name"] == name; });
    EXPECT_NE(found, spans.end()) << name;
    return found == spans.end() ? json{} : *found;
  }
  static std::string traceparent(FakeWorker& worker) {
    return std::string{worker.requests().back().headers.find("traceparent").value_or("")};
  }
};

// Law: a client's trace goes on at the engine, under a span of the router's leg, with the state that belongs to it.
TEST_F(Tracing, ClientsTraceGoesOn) {
  FakeWorker worker{answer_well};
  FakeWorker collector{answers(200)};
  serve_with_collector(worker.port(), collector.port(), 0);
  EXPECT_EQ(status_in(ask_with(kParent + "tracestate: a=b\r\n")), 200);
  const auto at_engine = parse_traceparent(traceparent(worker));
  ASSERT_TRUE(at_engine);
  EXPECT_EQ(to_hex(at_engine->trace), kTrace);
  EXPECT_EQ(worker.requests().back().headers.count("traceparent"), 1u);
  EXPECT_EQ(worker.requests().back().headers.find("tracestate"), "a=b");

  const std::vector<json> all = spans(collector, 3);
  ASSERT_THAT(all, SizeIs(3));
  const json whole = named(all, "POST /v1/completions");
  const json decode = named(all, "decode");
  EXPECT_EQ(whole["traceId"], kTrace);
  EXPECT_EQ(whole["parentSpanId"], kSpan);
  EXPECT_EQ(decode["parentSpanId"], whole["spanId"]);
  EXPECT_EQ(decode["spanId"], to_hex(at_engine->span));
  EXPECT_EQ(named(all, "pool wait")["parentSpanId"], whole["spanId"]);
  EXPECT_THAT(whole["attributes"],
              IsSupersetOf({json{{"key", "http.response.status_code"}, {"value", {{"intValue", "200"}}}},
                            json{{"key", "gen_ai.usage.input_tokens"}, {"value", {{"intValue", "9"}}}},
                            json{{"key", "gen_ai.usage.output_tokens"}, {"value", {{"intValue", "2"}}}}}));
  EXPECT_TRUE(log_->has(" trace=" + kTrace + " "));
  EXPECT_EQ(metric("balanceroute_trace_spans_total{outcome=\"sent\"}"), 3);
}

// Law: without a trace the router begins one; engines record it as they would without a router.
TEST_F(Tracing, RouterBeginsATrace) {
  FakeWorker worker{answer_well};
  serve({worker.port()});
  EXPECT_EQ(status_in(ask_with("")), 200);
  const auto at_engine = parse_traceparent(traceparent(worker));
  ASSERT_TRUE(at_engine);
  EXPECT_TRUE(at_engine->sampled);
  EXPECT_TRUE(log_->has(" trace=" + to_hex(at_engine->trace) + " "));
}

// Law: a trace that nobody can read is not gone on with, nor is its state.
TEST_F(Tracing, MalformedTraceIsLeftOut) {
  FakeWorker worker{answer_well};
  serve({worker.port()});
  for (const std::string& headers : {std::string{"traceparent: 00-xyz\r\n"}, kParent + kParent}) {
    EXPECT_EQ(status_in(ask_with(headers + "tracestate: a=b\r\n")), 200);
    const auto at_engine = parse_traceparent(traceparent(worker));
    ASSERT_TRUE(at_engine);
    EXPECT_NE(to_hex(at_engine->trace), kTrace);
    EXPECT_EQ(worker.requests().back().headers.find("tracestate"), std::nullopt);
  }
}

// Law: what the client does not want recorded, or is not among those to be recorded, is recorded nowhere.
TEST_F(Tracing, UnsampledTracesAreNotSent) {
  FakeWorker worker{answer_well};
  FakeWorker collector{answers(200)};
  serve_with_collector(worker.port(), collector.port(), 0);
  EXPECT_EQ(status_in(ask_with("traceparent: 00-" + kTrace + "-" + kSpan + "-00\r\n")), 200);
  EXPECT_FALSE(parse_traceparent(traceparent(worker))->sampled);
  EXPECT_EQ(status_in(ask_with("")), 200);
  EXPECT_FALSE(parse_traceparent(traceparent(worker))->sampled);
  EXPECT_EQ(status_in(ask_with(kParent)), 200);
  for (const json& span : spans(collector, 3)) EXPECT_EQ(span["traceId"], kTrace);
}

// Law: every try is a leg of its own.
TEST_F(Tracing, EachTryHasASpan) {
  std::atomic<int> failing{1};
  const net::HttpHandler refuse = answers(503);  // it lives as long as what it runs
  const auto fails_once = [&](net::HttpExchange& exchange) -> net::asio::awaitable<void> {
    if (failing-- > 0) return refuse(exchange);
    return answer_well(exchange);
  };
  FakeWorker one{fails_once};
  FakeWorker other{fails_once};
  FakeWorker collector{answers(200)};
  serve({one.port(), other.port()}, [&](ServeParams& params) {
    params.tracing.otlp_endpoint = url_at(collector.port());
    params.tracing.interval_ms = 10;
    params.retries.backoff_ms = 0;
  });
  EXPECT_EQ(status_in(ask(kText, kWhole)), 200);
  const std::vector<json> all = spans(collector, 4);
  EXPECT_EQ(std::ranges::count_if(all, [](const json& span) { return span["name"] == "decode"; }), 2);
  const json whole = named(all, "POST /v1/completions");
  EXPECT_THAT(whole["attributes"],
              testing::Contains(json{{"key", "balanceroute.tries"}, {"value", {{"intValue", "2"}}}}));
}

// Law: a failed request's span says so.
TEST_F(Tracing, FailedRequestIsAnError) {
  FakeWorker worker{answers(400)};
  FakeWorker collector{answers(200)};
  serve_with_collector(worker.port(), collector.port());
  EXPECT_EQ(status_in(ask_with("")), 400);
  EXPECT_EQ(named(spans(collector, 3), "POST /v1/completions")["status"]["code"], 2);
}

// Law: a collector that fails costs its spans, which are counted, told of once, and no request.
TEST_F(Tracing, CollectorThatFailsCostsOnlySpans) {
  FakeWorker worker{answer_well};
  FakeWorker collector{answers(503)};
  serve_with_collector(worker.port(), collector.port());
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(status_in(ask_with("")), 200);
    EXPECT_TRUE(testing_support::soon([&] {
      pass(10ms);
      return metric("balanceroute_trace_spans_total{outcome=\"dropped\"}") == 3 * i;
    }));
  }
  EXPECT_EQ(metric("balanceroute_trace_spans_total{outcome=\"sent\"}"), 0);
  EXPECT_EQ(std::ranges::count_if(log_->lines(), [](const auto& line) { return line.contains("spans are dropped"); }),
            1);
}

// Law: spans of the last requests are sent before the router ends.
TEST_F(Tracing, LastSpansAreSent) {
  FakeWorker worker{answer_well};
  FakeWorker collector{answers(200)};
  serve_with_collector(worker.port(), collector.port());
  EXPECT_EQ(status_in(ask_with("")), 200);
  service_.reset();
  EXPECT_THAT(spans_in(collector.requests()), SizeIs(3));
}

}  // namespace
}  // namespace balanceroute::proxy
