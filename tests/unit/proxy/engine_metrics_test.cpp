#include "proxy/engine_metrics.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

constexpr std::string_view kVllm = R"(# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="4",model_name="a{b}\"c"} 7.0
vllm:num_requests_running{engine="5",model_name="m"} 1e1
vllm:num_requests_waiting{engine="4",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="4",reason="capacity"} 99
vllm:kv_cache_usage_perc{engine="4",model_name="m"} 0.25
vllm:generation_tokens_total{engine="4",model_name="m"} 1000 1712345678000
vllm:generation_tokens_created{engine="4",model_name="m"} 5
vllm:request_success_total{engine="4",finished_reason="stop"} 3
vllm:request_success_total{engine="4",finished_reason="length"} 4
vllm:prompt_tokens_by_source_total{engine="5",source="local_compute"} 10
vllm:prompt_tokens_by_source_total{engine="5",source="external_kv_transfer"} 90
process_start_time_seconds 1712345000.5
)";

// Law: names are compared whole, ranks are told apart by their label, series of one rank are summed.
TEST(EngineMetrics, ReadsVllmRanks) {
  const EngineReading page = read_engine_metrics(kVllm);
  ASSERT_EQ(page.ranks.size(), 2u);
  const RankReading& four = page.ranks.at(4);
  EXPECT_EQ(four.running, 7);
  EXPECT_EQ(four.waiting, 2);
  EXPECT_EQ(four.kv_usage, 0.25);
  EXPECT_EQ(four.generated_tokens, 1000);
  EXPECT_EQ(four.finished_requests, 7);
  EXPECT_EQ(page.ranks.at(5).running, 10);
  EXPECT_FALSE(page.ranks.at(5).waiting);
  EXPECT_EQ(page.ranks.at(5).prompt_tokens_computed, 10);
  EXPECT_EQ(page.ranks.at(5).prompt_tokens_transferred, 90);
  EXPECT_EQ(page.started_at, 1712345000.5);
}

TEST(EngineMetrics, ReadsSglangRanks) {
  const EngineReading page = read_engine_metrics(
      "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 3\nsglang:num_queue_reqs{dp_rank=\"1\"} 4\n"
      "sglang:token_usage{dp_rank=\"1\"} 0.5");
  ASSERT_EQ(page.ranks.size(), 1u);
  EXPECT_EQ(page.ranks.at(1).running, 3);
  EXPECT_EQ(page.ranks.at(1).waiting, 4);
  EXPECT_EQ(page.ranks.at(1).kv_usage, 0.5);
}

// Law: what is no sample, or cut off, is passed over; the rest of the page counts.
TEST(EngineMetrics, BrokenLinesArePassedOver) {
  const EngineReading page = read_engine_metrics(
      "<html>\n{\nvllm:num_requests_running{engine=\"0\" 5\nvllm:num_requests_running\nvllm:num_requests_running x\n"
      "vllm:num_requests_waiting{engine=\"0\"} NaN\nvllm:num_requests_running{engine=\"0\"} 6\r\n"
      "vllm:num_requests_waiting{engine=");
  ASSERT_EQ(page.ranks.size(), 1u);
  EXPECT_EQ(page.ranks.at(0).running, 6);
  EXPECT_FALSE(page.ranks.at(0).waiting);
  EXPECT_FALSE(read_engine_metrics("").says_something());
}

// Law: a number that no engine can have of sequences says nothing, however often it comes.
TEST(EngineMetrics, ImpossibleCountsSayNothing) {
  const EngineReading page = read_engine_metrics(
      "sglang:num_queue_reqs 6.7e+90\nsglang:num_queue_reqs -5\nsglang:num_queue_reqs +Inf\nsglang:num_queue_reqs "
      "9.3e18\n"
      "sglang:num_running_reqs 1e9\nsglang:num_running_reqs 1e9\n");
  ASSERT_EQ(page.ranks.size(), 1u);
  EXPECT_FALSE(page.ranks.at(0).waiting);
  EXPECT_EQ(page.ranks.at(0).running, 2'000'000'000);
}

// Law: an engine was restarted when its start moved or a counter went back; not when it only counted on.
TEST(EngineMetrics, RestartsAreSeen) {
  const EngineReading before = read_engine_metrics(kVllm);
  EngineReading after = before;
  after.ranks.at(4).generated_tokens += 5;
  EXPECT_FALSE(restarted_between(before, after));
  after.ranks.at(4).generated_tokens = 999;
  EXPECT_TRUE(restarted_between(before, after));
  after = before;
  after.started_at += 60;
  EXPECT_TRUE(restarted_between(before, after));
  after.started_at = 0;
  EXPECT_FALSE(restarted_between(before, after));
}

}  // namespace
}  // namespace balanceroute::proxy
