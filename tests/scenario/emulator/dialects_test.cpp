// Each dialect's transfer of KV as a right router does it, and as wrong ones do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "net/io_thread.hpp"
#include "net/server.hpp"
#include "scenario/emulator/fleet_fixture.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::emulator {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::http_request;
using testing_support::RawClient;

constexpr std::string_view kDecode = R"({"prompt": "once upon", "max_tokens": 2)";
// What a router sends to a prefill engine of vLLM's kind.
constexpr std::string_view kPrefill =
    R"({"prompt": "once upon", "max_tokens": 1, "stream": false, "kv_transfer_params": {"do_remote_decode": true, )"
    R"("do_remote_prefill": false, "remote_engine_id": null, "remote_block_ids": null, "remote_host": null, )"
    R"("remote_port": null)";

class DialectTest : public FleetFixture {
 protected:
  static EmulatorParams fleet_of(std::string dialect) {
    auto params = quick();
    params.dialect = std::move(dialect);
    params.prefill_instances = 1;
    return params;
  }
  // The decode request with a member more.
  static std::string decode_with(const std::string& member) { return std::string{kDecode} + ", " + member + "}"; }
  [[nodiscard]] std::string metrics_of(std::uint16_t of) const { return get(of, "/metrics").raw; }
};

// What the relay dialects have in common.
class RelayTest : public DialectTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { start(fleet_of(GetParam())); }

  // The object in a prefill answer, byte by byte.
  [[nodiscard]] std::string prefill() const {
    const auto answer = complete(prefill_port(), std::string{kPrefill} + "}}");
    EXPECT_EQ(answer.status(), 200) << answer.raw;
    constexpr std::string_view kMember = R"("kv_transfer_params":)";
    const auto object = answer.raw.substr(answer.raw.find(kMember) + kMember.size());
    return object.substr(0, object.size() - 1);
  }
  [[nodiscard]] static std::string decode_of(const std::string& object) {
    return decode_with(R"("kv_transfer_params": )" + object);
  }
};

INSTANTIATE_TEST_SUITE_P(Dialects, RelayTest, testing::Values("vllm_nixl", "ascend_mooncake"));

// Law: the object relayed as it is brings the KV: nothing is computed on the decode rank, nothing is held afterwards.
TEST_P(RelayTest, RelayedObjectBringsTheKv) {
  const auto object = prefill();
  EXPECT_EQ(state()["ranks"][1]["kv_tokens"], 3);
  EXPECT_EQ(state()["holds_nothing"], false);
  const auto answer = complete(port(), decode_of(object));
  EXPECT_EQ(answer.json()["choices"][0]["text"], " t1 t2");
  EXPECT_THAT(metrics_of(port()), HasSubstr(R"(engine="0",source="external_kv_transfer"} 3)"));
  EXPECT_THAT(metrics_of(port()), HasSubstr(R"(engine="0",source="local_compute"} 0)"));
  EXPECT_EQ(kv("transferred"), 1);
  EXPECT_EQ(kv("relay_faults"), 0);
  expect_nothing_held();
}

// Law: one changed byte is a fault, even where the value is the same.
TEST_P(RelayTest, ChangedObjectIsAFault) {
  auto object = prefill();
  object.insert(1, " ");
  const auto answer = complete(port(), decode_of(object));
  EXPECT_EQ(answer.status(), 500);
  EXPECT_THAT(answer.error(), HasSubstr("differ from those of the prefill answer"));
  EXPECT_EQ(kv("relay_faults"), 1);
  expect_nothing_held();
}

// Law: KV is pulled once.
TEST_P(RelayTest, SecondUseIsAFault) {
  const auto object = prefill();
  EXPECT_EQ(complete(port(), decode_of(object)).status(), 200);
  EXPECT_THAT(complete(port(), decode_of(object)).error(), HasSubstr("pulled before"));
  EXPECT_EQ(kv("relay_faults"), 1);
}

TEST_P(RelayTest, ObjectThatIsNoneIsAFault) {
  for (const char* object : {R"({})", R"({"do_remote_prefill": true})",
                             R"({"do_remote_prefill": true, "remote_engine_id": "x", "remote_request_id": "y"})"}) {
    EXPECT_EQ(complete(port(), decode_of(object)).status(), 500) << object;
  }
  EXPECT_EQ(kv("relay_faults"), 3);
}

// Law: a decode request without an object is no fault: the rank computes the prompt, and it shows.
TEST_P(RelayTest, WithoutAnObjectThePromptIsComputed) {
  EXPECT_EQ(complete(port(), std::string{kDecode} + "}").status(), 200);
  EXPECT_THAT(metrics_of(port()), HasSubstr(R"(engine="0",source="local_compute"} 3)"));
  EXPECT_EQ(kv("local_prompts"), 1);
  EXPECT_EQ(kv("relay_faults"), 0);
}

// Law: a prefill engine takes nothing but a prefill request, and says what is wrong.
TEST_P(RelayTest, PrefillEngineChecksTheRequest) {
  const auto refusal = [this](std::string body) { return complete(prefill_port(), body).error(); };
  const auto with = [](std::string_view members) {
    return R"({"prompt": "x", "kv_transfer_params": {"do_remote_decode": true}, )" + std::string{members} + "}";
  };
  EXPECT_THAT(refusal(std::string{kDecode} + "}"), HasSubstr("kv_transfer_params is missing"));
  EXPECT_THAT(refusal(R"({"prompt": "x", "max_tokens": 1, "kv_transfer_params": {"do_remote_decode": false}})"),
              HasSubstr("do_remote_decode: expected true"));
  EXPECT_THAT(refusal(with(R"("max_tokens": 1, "stream": true)")), HasSubstr("stream: expected false"));
  EXPECT_THAT(refusal(with(R"("max_tokens": 2)")), HasSubstr("2, expected 1"));
  EXPECT_THAT(refusal(with(R"("max_tokens": 1, "max_completion_tokens": 9)")), HasSubstr("9, expected 1"));
  EXPECT_THAT(refusal(with(R"("max_tokens": 1, "min_tokens": 5)")), HasSubstr("min_tokens = 5"));
  EXPECT_THAT(refusal(with(R"("max_tokens": 1, "n": 2)")), HasSubstr("n = 2: expected 1"));
  EXPECT_EQ(kv("relay_faults"), 7);
  EXPECT_EQ(kv("offered"), 0);
}

// Law: an answer that ends with its first token leaves no KV behind, and says so by having no object.
TEST_P(RelayTest, FinishedPrefillHasNoObject) {
  const auto answer =
      complete(prefill_port(), std::string{kPrefill} + R"(}, "emulator": {"output_tokens": 1}})").json();
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_FALSE(answer.contains("kv_transfer_params"));
  expect_nothing_held();
}

// Law: a client that leaves during prefill takes its prompt along.
TEST_P(RelayTest, ClientThatLeavesPrefillLeavesNothing) {
  auto params = fleet_of(GetParam());
  params.prefill_time = {.fixed_ms = 3'600'000};
  start(params);
  RawClient client{prefill_port()};
  client.send(http_request("POST", "/v1/completions", std::string{kPrefill} + "}}"));
  state_when([](const json& now) { return now["ranks"][1]["running"] == 1; });
  client.close();
  expect_nothing_held();
  EXPECT_THAT(metrics_of(prefill_port()), HasSubstr(R"(finished_reason="abort"} 1)"));
}

// Law: KV that nobody fetches is given up at the end of its lease; then it is too late.
TEST_P(RelayTest, LeaseEnds) {
  auto params = fleet_of(GetParam());
  params.lease_seconds = 0.001;
  start(params);
  const auto object = prefill();
  expect_nothing_held();
  EXPECT_EQ(kv("leases_expired"), 1);
  EXPECT_THAT(complete(port(), decode_of(object)).error(), HasSubstr("its lease ended"));
}

// Law: where real engines recompute in silence so does this one, and only its figures tell.
TEST_P(RelayTest, RecomputesInSilence) {
  auto params = fleet_of(GetParam());
  params.kv_load_failure_policy = "recompute";
  start(params);
  auto object = prefill();
  object.insert(1, " ");
  EXPECT_EQ(complete(port(), decode_of(object)).status(), 200);  // real ones read the members only
  EXPECT_EQ(kv("relay_faults"), 0);
  EXPECT_EQ(complete(port(), decode_of(object)).status(), 200);
  EXPECT_EQ(kv("relay_faults"), 1);
  EXPECT_EQ(kv("recomputed_prompts"), 1);
  EXPECT_THAT(metrics_of(port()), HasSubstr(R"(engine="0",source="local_compute"} 3)"));
}

// Law: KV lost on the way fails the request and is no fault of the router, whichever side lost it.
TEST_P(RelayTest, LostKvFailsTheRequest) {
  const auto lost = complete(port(), decode_of(prefill()), "X-Emulator-Fault: kv_loss\r\n");
  EXPECT_THAT(lost.error(), HasSubstr("broke"));
  const auto answer = complete(prefill_port(), std::string{kPrefill} + "}}", "X-Emulator-Fault: kv_loss\r\n");
  const auto object = answer.json()["kv_transfer_params"];
  EXPECT_EQ(complete(port(), decode_of(object.dump())).status(), 500);
  expect_nothing_held();
}

// Law: a stream's status goes out before its KV is asked for: the loss is an event, in a chat after the role.
TEST_P(RelayTest, LostKvOfAStreamIsAnEvent) {
  auto body = decode_of(prefill());
  body.insert(1, R"("stream":true,)");
  const auto text = complete(port(), body, "X-Emulator-Fault: kv_loss\r\n");
  EXPECT_EQ(text.status(), 200);
  EXPECT_THAT(text.raw, HasSubstr(R"(data: {"error":{"message":)"));
  EXPECT_THAT(text.raw, HasSubstr("data: [DONE]"));
  expect_nothing_held();
}

// Law: a prefill engine that begins anew has another name, and none of its KV.
TEST_P(RelayTest, RestartLosesTheKv) {
  const auto object = prefill();
  const auto before = state()["ranks"][1]["engine_id"];
  EXPECT_EQ(post(prefill_port(), "/emulator/restart", "{}").status(), 200);
  const auto after = state_when([](const json& now) { return now["ranks"][1]["restarts"] == 1; });
  EXPECT_NE(after["ranks"][1]["engine_id"], before);
  EXPECT_EQ(complete(port(), decode_of(object)).status(), 500);
  expect_nothing_held();
}

// Law: the transfer takes its time, in which the request waits and the prefill engine holds the KV.
TEST_P(RelayTest, TransferTakesItsTime) {
  auto params = fleet_of(GetParam());
  params.transfer_time = {.fixed_ms = 3'600'000};
  start(params);
  RawClient client{port()};
  client.send(http_request("POST", "/v1/completions", decode_of(prefill())));
  const auto now = state_when([](const json& seen) { return seen["ranks"][0]["waiting"] == 1; });
  EXPECT_EQ(now["ranks"][0]["running"], 0);
  EXPECT_EQ(now["ranks"][1]["kv_tokens"], 3);
  EXPECT_EQ(now["kv_offers"], 0);
  client.close();
  expect_nothing_held();
}

class TransferIdTest : public DialectTest {
 protected:
  void SetUp() override { start_with_lease(3600); }
  void start_with_lease(double seconds) {
    auto params = fleet_of("vllm_mooncake");
    params.prefill_ranks = 2;
    params.lease_seconds = seconds;
    start(params);
  }
  [[nodiscard]] std::string bootstrap() const {
    return "http://127.0.0.1:" + std::to_string(emulator->bootstrap_ports()[0]);
  }
  [[nodiscard]] std::string engine_id(const char* rank) const {
    return get(emulator->bootstrap_ports()[0], "/query").json()[rank]["engine_id"];
  }
  [[nodiscard]] static std::string prefill_of(std::string_view id) {
    return std::string{kPrefill} + R"(, "transfer_id": ")" + std::string{id} + R"("}})";
  }
  [[nodiscard]] std::string decode_of(std::string_view id, std::string_view engine) const {
    return decode_with(R"("kv_transfer_params": {"do_remote_prefill": true, "do_remote_decode": false, )"
                       R"("transfer_id": ")" +
                       std::string{id} + R"(", "remote_bootstrap_addr": ")" + bootstrap() +
                       R"(", "remote_engine_id": ")" + std::string{engine} + R"("})");
  }
};

// Law: both requests meet by their id, whichever comes first, and the prefill rank is the header's.
TEST_F(TransferIdTest, RequestsMeetByTheirId) {
  EXPECT_EQ(complete(prefill_port(), prefill_of("xfer-1"), "X-data-parallel-rank: 1\r\n").status(), 200);
  EXPECT_EQ(complete(port(), decode_of("xfer-1", engine_id("1"))).status(), 200);
  RawClient decode{port()};
  decode.send(http_request("POST", "/v1/completions", decode_of("xfer-2", engine_id("0"))));
  state_when([](const json& now) { return now["ranks"][0]["waiting"] == 1; });
  const auto answer = complete(prefill_port(), prefill_of("xfer-2"), "X-data-parallel-rank: 0\r\n").json();
  EXPECT_FALSE(answer.contains("kv_transfer_params"));
  EXPECT_THAT(decode.read_to_end(), HasSubstr(" t1 t2"));
  EXPECT_EQ(kv("transferred"), 2);
  EXPECT_EQ(kv("relay_faults"), 0);
  expect_nothing_held();
}

// Law: the wrong rank's engine id is a fault, as are requests without an id.
TEST_F(TransferIdTest, WrongEngineOrNoIdIsAFault) {
  complete(prefill_port(), prefill_of("xfer-1"), "X-data-parallel-rank: 1\r\n");
  EXPECT_THAT(complete(port(), decode_of("xfer-1", engine_id("0"))).error(),
              HasSubstr("expected remote_bootstrap_addr"));
  EXPECT_THAT(complete(port(), decode_with(R"("kv_transfer_params": {"do_remote_prefill": true})")).error(),
              HasSubstr("transfer_id"));
  EXPECT_THAT(complete(prefill_port(), std::string{kPrefill} + "}}").error(), HasSubstr("transfer_id is missing"));
  EXPECT_EQ(kv("relay_faults"), 3);
  expect_nothing_held();
}

// Law: an id that no prefill engine has heard of is waited for as long as a lease, and is a fault then.
TEST_F(TransferIdTest, UnknownIdIsAFaultAfterALease) {
  start_with_lease(0.001);
  EXPECT_THAT(complete(port(), decode_of("xfer-1", engine_id("0"))).error(), HasSubstr("xfer-1 in time"));
  EXPECT_EQ(kv("relay_faults"), 1);
}

// Law: an answer that is over with its first token leaves no KV, unless min_tokens keeps it from being over.
TEST_F(TransferIdTest, FinishedPrefillLeavesNoKv) {
  const auto prefill_ending = [this](std::string_view id, std::string_view members) {
    auto body = prefill_of(id);
    body.insert(1, R"("emulator": {"output_tokens": 1}, )" + std::string{members});
    return complete(prefill_port(), body, "X-data-parallel-rank: 0\r\n").json()["choices"][0]["finish_reason"];
  };
  EXPECT_EQ(prefill_ending("xfer-1", ""), "stop");
  expect_nothing_held();
  EXPECT_EQ(prefill_ending("xfer-2", R"("min_tokens": 1, )"), "length");
  EXPECT_EQ(kv("offered"), 1);
  EXPECT_EQ(complete(port(), decode_of("xfer-2", engine_id("0"))).status(), 200);
  expect_nothing_held();
}

// Law: a decode client that leaves before its KV is there leaves nothing behind.
TEST_F(TransferIdTest, DecodeThatLeavesAbandonsItsKv) {
  RawClient decode{port()};
  decode.send(http_request("POST", "/v1/completions", decode_of("xfer-1", engine_id("0"))));
  const auto waits = state_when([](const json& now) { return now["ranks"][0]["waiting"] == 1; });
  EXPECT_EQ(waits["holds_nothing"], false);
  decode.close();
  state_when([](const json& now) { return now["ranks"][0]["waiting"] == 0; });
  EXPECT_EQ(complete(prefill_port(), prefill_of("xfer-1"), "X-data-parallel-rank: 0\r\n").status(), 200);
  EXPECT_EQ(kv("abandoned"), 1);
  expect_nothing_held();
}

class RoomTest : public DialectTest {
 protected:
  void SetUp() override { start_with_lease(3600); }
  void start_with_lease(double seconds) {
    auto params = fleet_of("sglang");
    params.prefill_ranks = 2;
    params.ranks = 2;
    params.ranks_per_port = 2;
    params.lease_seconds = seconds;
    start(params);
  }
  [[nodiscard]] std::string body_of_room(std::int64_t room, std::string_view more = "") const {
    return decode_with(R"("bootstrap_host": "127.0.0.1", "bootstrap_port": )" +
                       std::to_string(emulator->bootstrap_ports()[0]) + R"(, "bootstrap_room": )" +
                       std::to_string(room) + std::string{more});
  }
  // Both requests at once, as routers send them.
  struct Both {
    Reply prefill;
    Reply decode;
  };
  Both send_both(const std::string& prefill_body, const std::string& decode_body) const {
    auto prefill = std::async(std::launch::async, [&] { return complete(prefill_port(), prefill_body); });
    Both both{.prefill = {}, .decode = complete(port(), decode_body)};
    both.prefill = prefill.get();
    return both;
  }
};

// Law: equal bodies meet in their room; the prefill rank is the room's, the decode rank the body's.
TEST_F(RoomTest, EqualBodiesMeet) {
  const auto body = body_of_room(9'223'372'036'854'775'807, R"(, "routed_dp_rank": 1, "stream": true)");
  const auto both = send_both(body, body);
  EXPECT_THAT(both.decode.raw, HasSubstr(" t1"));
  EXPECT_THAT(both.decode.raw, HasSubstr("[DONE]"));
  EXPECT_THAT(both.prefill.raw, HasSubstr("[DONE]"));
  EXPECT_THAT(get(prefill_port(), "/metrics").raw,
              HasSubstr(R"(sglang:prompt_tokens_total{model_name="emulated",engine_type="prefill",tp_rank="0",)"
                        R"(pp_rank="0",dp_rank="1"} 3)"));
  EXPECT_THAT(get(port(), "/metrics").raw, HasSubstr(R"(engine_type="decode",tp_rank="0",pp_rank="0",dp_rank="1"} 2)"));
  EXPECT_EQ(kv("relay_faults"), 0);
  expect_nothing_held();
}

// Law: bodies may differ in ranks, in nothing else.
TEST_F(RoomTest, OtherBodiesAreAFault) {
  EXPECT_EQ(send_both(body_of_room(2), body_of_room(2, R"(, "disagg_prefill_dp_rank": 0)")).decode.status(), 200);
  const auto wrong = send_both(body_of_room(4), body_of_room(4, R"(, "temperature": 1)"));
  EXPECT_THAT(wrong.decode.error(), HasSubstr("expected equal bodies"));
  const auto elsewhere = send_both(body_of_room(6), body_of_room(6, R"(, "disagg_prefill_dp_rank": 1)"));
  EXPECT_THAT(elsewhere.decode.error(), HasSubstr("disagg_prefill_dp_rank = 1: expected 0"));
  EXPECT_EQ(kv("relay_faults"), 2);
  expect_nothing_held();
}

// Law: a room is used once, belongs to its engine, and is never missing.
TEST_F(RoomTest, WrongRoomsAreRefused) {
  const auto body = body_of_room(2);
  send_both(body, body);
  const auto again = send_both(body, body);
  EXPECT_EQ(again.prefill.status(), 400);
  EXPECT_THAT(again.decode.error(), HasSubstr("bootstrap_room = 2: used before"));
  EXPECT_THAT(complete(port(), std::string{kDecode} + "}").error(), HasSubstr("expected one of each for each prompt"));
  EXPECT_THAT(complete(prefill_port(), decode_with(R"("bootstrap_host": "127.0.0.1", "bootstrap_port": 1, )"
                                                   R"("bootstrap_room": 4)"))
                  .error(),
              HasSubstr("expected 127.0.0.1:" + std::to_string(emulator->bootstrap_ports()[0])));
  EXPECT_EQ(kv("relay_faults"), 4);
}

// Law: a room is for one answer.
TEST_F(RoomTest, SeveralAnswersAreRefused) {
  const auto body = body_of_room(2, R"(, "n": 2)");
  const auto both = send_both(body, body);
  EXPECT_THAT(both.prefill.error(), HasSubstr("n = 2: expected 1"));
  EXPECT_EQ(both.decode.status(), 400);
  EXPECT_EQ(kv("relay_faults"), 2);
  expect_nothing_held();
}

// Law: a side that comes alone waits for a lease and fails.
TEST_F(RoomTest, OneSideAloneFails) {
  start_with_lease(0.001);
  EXPECT_THAT(complete(port(), body_of_room(2)).error(), HasSubstr("no prefill engine came to bootstrap_room 2"));
  EXPECT_THAT(complete(prefill_port(), body_of_room(4)).error(), HasSubstr("no decode engine came"));
  EXPECT_EQ(kv("leases_expired"), 1);
  expect_nothing_held();
}

// Law: a list of prompts has a room for each.
TEST_F(RoomTest, PromptListsHaveARoomEach) {
  const auto port_text = std::to_string(emulator->bootstrap_ports()[0]);
  const auto body = R"({"prompt": ["a", "b"], "max_tokens": 1, "bootstrap_host": ["127.0.0.1", "127.0.0.1"], )"
                    R"("bootstrap_port": [)" +
                    port_text + ", " + port_text + R"(], "bootstrap_room": [2, 4]})";
  EXPECT_EQ(send_both(body, body).decode.json()["choices"].size(), 2U);
  EXPECT_EQ(kv("transferred"), 2);
  expect_nothing_held();
}

// A router's metaserver: answers callbacks as `answer` says.
class Metaserver {
 public:
  using Answer = std::function<int(const json&, const std::string&)>;

  explicit Metaserver(const net::Clock& clock, Answer answer)
      : threads_{2, "metaserver", clock},
        server_{threads_, {}, [this](net::HttpExchange& exchange) { return handle(exchange); }},
        answer_{std::move(answer)},
        port_{*server_.listen("127.0.0.1", 0)} {
    threads_.start();
  }
  ~Metaserver() {
    server_.stop();
    threads_.stop();
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1/metaserver"; }

 private:
  boost::asio::awaitable<void> handle(net::HttpExchange& exchange) {
    const auto body = exchange.request().body;
    const int status = exchange.request().path() == "/v1/metaserver" ? answer_(json::parse(body), body) : 404;
    co_await exchange.respond(net::json_response(status, R"({"status":"ok"})"));
  }

  net::IoThreads threads_;
  net::HttpServer server_;
  Answer answer_;
  std::uint16_t port_;
};

class LayerwiseTest : public DialectTest {
 protected:
  void SetUp() override {
    auto params = fleet_of("ascend_layerwise");
    params.lease_seconds = 3600;
    start(params);
  }
  [[nodiscard]] static std::string decode_through(const std::string& metaserver) {
    return decode_with(
        R"("kv_transfer_params": {"do_remote_decode": false, "do_remote_prefill": true, "metaserver": ")" + metaserver +
        R"("})");
  }
  [[nodiscard]] static std::string prefill_of(const std::string& object) {
    return R"({"prompt": "once upon", "max_tokens": 1, "min_tokens": 1, "stream": false, "kv_transfer_params": )" +
           object + "}";
  }
};

// Law: the decode engine asks the metaserver, and starts when the prefill engine that was told the same is done.
TEST_F(LayerwiseTest, PrefillIsAskedForByTheDecodeEngine) {
  json asked;
  const Metaserver router{clock, [&](const json& object, const std::string& text) {
                            asked = object;
                            return complete(prefill_port(), prefill_of(text)).status();
                          }};
  const auto answer = complete(port(), decode_through(router.url()), "X-Request-Id: abc\r\n");
  EXPECT_EQ(answer.json()["choices"][0]["text"], " t1 t2") << answer.raw;
  EXPECT_EQ(asked["request_id"], "cmpl-abc-0");
  EXPECT_EQ(asked["do_remote_decode"], true);
  EXPECT_EQ(asked["remote_engine_id"], state()["ranks"][0]["engine_id"]);
  EXPECT_THAT(metrics_of(port()), HasSubstr(R"(engine="0",source="external_kv_transfer"} 3)"));
  EXPECT_EQ(kv("relay_faults"), 0);
  expect_nothing_held();
}

// Law: layers are pushed before the first token is known, so that an answer that is over with it has its KV all the
// same.
TEST_F(LayerwiseTest, FinishedPrefillHasPushedItsKv) {
  json first;
  const Metaserver router{clock, [&](const json&, const std::string& text) {
                            auto body = prefill_of(text);
                            body.replace(body.find(R"("min_tokens": 1)"), 15, R"("emulator": {"output_tokens": 1})");
                            first = complete(prefill_port(), body).json()["choices"][0];
                            return 200;
                          }};
  EXPECT_EQ(complete(port(), decode_through(router.url())).status(), 200);
  EXPECT_EQ(first["finish_reason"], "stop");
  EXPECT_EQ(kv("transferred"), 1);
  expect_nothing_held();
}

// Law: a prefill engine that is told something else refuses, and the decode request fails with the callback.
TEST_F(LayerwiseTest, ChangedObjectIsAFault) {
  const Metaserver router{clock, [&](json object, const std::string&) {
                            object["remote_port"] = 1;
                            const auto refused = complete(prefill_port(), prefill_of(object.dump()));
                            EXPECT_EQ(refused.status(), 400);
                            return 502;
                          }};
  EXPECT_THAT(complete(port(), decode_through(router.url())).error(), HasSubstr("/v1/metaserver: status 502"));
  EXPECT_EQ(kv("relay_faults"), 1);
  expect_nothing_held();
}

// Law: a prefill for a decode request whose client has left meanwhile is done for nobody, and is no fault of the relay.
TEST_F(LayerwiseTest, PrefillOfWhoLeftIsNoFault) {
  std::promise<std::string> asked;
  const Metaserver router{clock, [&](const json&, const std::string& text) {
                            asked.set_value(text);
                            return 200;
                          }};
  RawClient decode{port()};
  decode.send(http_request("POST", "/v1/completions", decode_through(router.url())));
  const std::string object = asked.get_future().get();
  decode.close();
  state_when([](const json& now) { return now["ranks"][0]["waiting"] == 0; });
  EXPECT_EQ(complete(prefill_port(), prefill_of(object)).status(), 200);
  EXPECT_EQ(kv("relay_faults"), 0);
  EXPECT_EQ(kv("abandoned"), 1);
  expect_nothing_held();
}

TEST_F(LayerwiseTest, UnreachableMetaserverFailsTheRequest) {
  EXPECT_THAT(complete(port(), decode_through("http://127.0.0.1:1/v1/metaserver")).error(), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(complete(port(), decode_through("nowhere")).error(), HasSubstr("metaserver: nowhere: expected http://"));
  EXPECT_THAT(complete(prefill_port(), prefill_of(R"({"do_remote_decode": true, "request_id": "cmpl-x-0"})")).error(),
              HasSubstr("no decode engine waits for it"));
}

// Law: a list of prompts asks once for each, and one prefill request serves them all.
TEST_F(LayerwiseTest, PromptListsAreServedByOnePrefill) {
  std::mutex mutex;
  std::map<std::string, std::string> asked;
  const Metaserver router{clock, [&](const json& object, const std::string& text) {
                            const std::scoped_lock lock{mutex};
                            asked[object["request_id"]] = text;
                            return 200;
                          }};
  RawClient decode{port()};
  decode.send(http_request("POST", "/v1/completions",
                           R"({"prompt": ["a", "b"], "max_tokens": 1, "kv_transfer_params": {"do_remote_prefill": true,
                               "metaserver": ")" +
                               router.url() + R"("}})",
                           "X-Request-Id: abc\r\n"));
  const auto all_asked = [&] {
    const std::scoped_lock lock{mutex};
    return asked.size() == 2;
  };
  while (!all_asked()) std::this_thread::yield();
  const auto& first = asked.at("cmpl-abc-0");
  const auto answer = complete(prefill_port(), R"({"prompt": ["a", "b"], "max_tokens": 1, "kv_transfer_params": )" +
                                                   first + R"(, "batch_kv_transfer_params": {"cmpl-abc-0": )" + first +
                                                   R"(, "cmpl-abc-1": )" + asked.at("cmpl-abc-1") + "}}");
  EXPECT_EQ(answer.status(), 200) << answer.raw;
  EXPECT_THAT(decode.read_to_end(), HasSubstr(R"("index":1,"text":" t1")"));
  EXPECT_EQ(kv("relay_faults"), 0);
  expect_nothing_held();
}

}  // namespace
}  // namespace balanceroute::emulator
