#include "proxy/fleet_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace balanceroute::proxy {
namespace {

class FleetCheckTest : public testing::Test {
 protected:
  FleetCheckTest() {
    group.name = "g";
    group.slots = 8;
    group.kv = {.capacity_tokens = 1600, .reserve_tokens = 0, .block_size = 16};
    pages.health = 200;
    pages.version = "0.10.0";
    pages.metrics = page(3, 0);
  }

  static std::string page(int running, int waiting, const std::string& more = "") {
    return "vllm:num_requests_running{engine=\"0\"} " + std::to_string(running) +
           "\nvllm:num_requests_waiting{engine=\"0\"} " + std::to_string(waiting) +
           "\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"100\"} 1\n" + more;
  }
  std::vector<Finding> judge() { return judge_group(fleet, group, {worker}, {pages}); }
  // The one finding that is not good.
  Finding fault() {
    auto findings = judge();
    std::erase_if(findings, [](const Finding& one) { return one.verdict == Verdict::good; });
    EXPECT_EQ(findings.size(), 1u);
    return findings.empty() ? Finding{} : findings.front();
  }

  FleetParams fleet;
  GroupParams group;
  EnginePages pages;
  WorkerSpec worker{.url = "http://a:1", .address = {}};
};

// Law: a fleet that fits has nothing but good findings.
TEST_F(FleetCheckTest, WhatFitsIsGood) {
  EXPECT_TRUE(std::ranges::all_of(judge(), [](const Finding& one) { return one.verdict == Verdict::good; }));
}

TEST_F(FleetCheckTest, WhatCannotBeReachedIsWrong) {
  pages = {.unreachable = "connect to a:1: Connection refused"};
  EXPECT_EQ(fault().verdict, Verdict::wrong);
  EXPECT_NE(fault().what.find("Connection refused"), std::string::npos);
}

TEST_F(FleetCheckTest, SickEngineIsWrong) {
  pages.health = 503;
  EXPECT_EQ(fault().what, "GET /health answers 503");
}

// Law: a model that the engine does not serve would be 404 for every request.
TEST_F(FleetCheckTest, UnservedModelIsWrong) {
  fleet.models = {{.name = "llama"}};
  pages.models = {"qwen", "phi"};
  EXPECT_EQ(fault().what, "serves qwen, phi and not llama");
  pages.models = {"llama"};
  EXPECT_EQ(judge().size(), 1u);
}

TEST_F(FleetCheckTest, EngineOfAnotherKindIsWrong) {
  fleet.dialect = "sglang";
  EXPECT_EQ(fault().what, "is vLLM and the fleet's dialect is sglang");
}

// Law: more running than slots shows that slots is wrong; a queue before free slots lets one doubt it.
TEST_F(FleetCheckTest, SlotsAreJudgedByTheEnginesFigures) {
  pages.metrics = page(9, 0);
  EXPECT_EQ(fault().verdict, Verdict::wrong);
  EXPECT_EQ(fault().what, "runs 9 sequences and slots is 8");
  pages.metrics = page(4, 2);
  EXPECT_EQ(fault().verdict, Verdict::doubtful);
  pages.metrics = page(8, 2);
  EXPECT_EQ(judge().size(), 1u);
}

// Law: ranks behind one address are told with what to set; where they are named, each must be one that the engine has.
TEST_F(FleetCheckTest, RanksAreTheEngines) {
  pages.metrics = "vllm:num_requests_running{engine=\"4\"} 1\nvllm:num_requests_running{engine=\"5\"} 0\n";
  EXPECT_EQ(fault().what, "2 ranks share this address and the router takes it for one");
  EXPECT_EQ(fault().advice, "set ranks: 2 and addressing: header (body for SGLang), and start_rank: 4");
  worker.address = {.naming = RankNaming::Header, .engine_rank = 0};
  EXPECT_EQ(fault().what, "has no rank 0; it has 4 to 5");
  EXPECT_EQ(fault().advice, "set start_rank: 4 and ranks: 2");
  worker.address.engine_rank = 5;
  EXPECT_EQ(judge().size(), 1u);
}

// Law: the advice about KV space has the engine's own numbers.
TEST_F(FleetCheckTest, KvSpaceIsCompared) {
  group.kv.capacity_tokens = 1601;
  EXPECT_EQ(fault().what, "holds 1600 tokens of KV and kv_capacity_tokens is 1601");
  group.kv = {};
  EXPECT_EQ(fault().advice, "set kv_capacity_tokens: 1600 and block_size: 16");
}

// Law: a decode worker that computes prompts, though their KV was to come, is found; a cold start is not.
TEST_F(FleetCheckTest, SilentRecomputeIsFound) {
  const auto by_source = [](int computed, int transferred) {
    return page(0, 0,
                "vllm:prompt_tokens_by_source_total{engine=\"0\",source=\"local_compute\"} " +
                    std::to_string(computed) +
                    "\nvllm:prompt_tokens_by_source_total{engine=\"0\",source=\"external_kv_transfer\"} " +
                    std::to_string(transferred) + "\n");
  };
  pages.metrics = by_source(60, 40);
  EXPECT_EQ(judge().size(), 1u);  // an aggregated engine computes all
  fleet.dialect = "vllm_nixl";
  EXPECT_EQ(fault().what, "computed 60 % of its prompt tokens itself since its start");
  pages.metrics = by_source(4, 96);
  EXPECT_EQ(judge().size(), 1u);
}

TEST_F(FleetCheckTest, DifferentVersionsAreDoubtful) {
  fleet.barrier = false;
  EnginePages other = pages;
  other.version = "0.11.0";
  const auto findings = judge_group(fleet, group, {worker, {.url = "http://b:1", .address = {}}}, {pages, other});
  EXPECT_EQ(findings.back().verdict, Verdict::doubtful);
  EXPECT_EQ(findings.back().what, "has versions 0.10.0, 0.11.0");
}

// Law: servers that are no ranks of one deployment, which all call themselves rank 0, are no group with a barrier.
TEST_F(FleetCheckTest, ServersOnTheirOwnAreNoGroup) {
  const std::vector<WorkerSpec> workers{worker, {.url = "http://b:1", .address = {}}};
  const auto findings = judge_group(fleet, group, workers, {pages, pages});
  EXPECT_EQ(findings.back().verdict, Verdict::doubtful);
  EXPECT_EQ(findings.back().what, "has two servers whose engines call themselves rank 0: http://a:1 and http://b:1");
  EnginePages second = pages;
  second.metrics = "vllm:num_requests_running{engine=\"1\"} 3\n";
  EXPECT_EQ(judge_group(fleet, group, workers, {pages, second}).back().verdict, Verdict::good);
  fleet.barrier = false;
  EXPECT_EQ(judge_group(fleet, group, workers, {pages, pages}).back().verdict, Verdict::good);
}

}  // namespace
}  // namespace balanceroute::proxy
