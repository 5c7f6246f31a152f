// Faults on demand, as a client of a broken engine meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/system/system_error.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "scenario/emulator/fleet_fixture.hpp"
#include "support/raw_client.hpp"

namespace balanceroute::emulator {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing_support::http_request;
using testing_support::RawClient;

const std::string kShort = R"({"prompt": "x", "max_tokens": 5})";
const std::string kStream = R"({"prompt": "x", "max_tokens": 5, "stream": true})";
const std::string kEndless = R"({"prompt": "x", "max_tokens": 1000000, "stream": true})";

class FaultsTest : public FleetFixture {
 protected:
  void SetUp() override {
    auto params = quick();
    params.ranks = 2;
    start(params);
  }
  [[nodiscard]] static std::string demand(std::string_view fault) {
    return "X-Emulator-Fault: " + std::string{fault} + "\r\n";
  }
  [[nodiscard]] std::int64_t met(const char* kind) const { return stats()["faults"][kind]; }
};

TEST_F(FaultsTest, RefusedRequestGetsNoByte) {
  EXPECT_EQ(complete(port(), kShort, demand("refuse")).raw, "");
  EXPECT_EQ(met("refuse"), 1);
}

// Law: a reset is seen as one, not as an end.
TEST_F(FaultsTest, ResetConnectionIsReset) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket{context};
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), port()});
  boost::asio::write(socket, boost::asio::buffer(http_request("POST", "/v1/completions", kShort, demand("reset"))));
  char byte = 0;
  boost::system::error_code failure;
  socket.read_some(boost::asio::buffer(&byte, 1), failure);
  EXPECT_EQ(failure, boost::asio::error::connection_reset);
}

TEST_F(FaultsTest, StatusIsAnsweredInTheShapeOfTheApi) {
  const auto answer = complete(port(), kShort, demand("status:503"));
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.json()["error"]["code"], 503);
}

// Law: a slow request is answered all the same, later.
TEST_F(FaultsTest, SlowRequestIsAnswered) {
  const auto before = clock.now();
  EXPECT_EQ(complete(port(), kShort, demand("slow:20")).status(), 200);
  EXPECT_GE(clock.now() - before, std::chrono::milliseconds{20});
}

TEST_F(FaultsTest, GarbageIsNoAnswer) {
  const auto answer = complete(port(), kStream, demand("garbage")).raw;
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
}

// Law: a stream that dies has the events before, no end mark and no proper end, and its sequence is gone.
TEST_F(FaultsTest, StreamDiesInItsMiddle) {
  const auto answer = complete(port(), kEndless, demand("die_mid_stream:3")).raw;
  EXPECT_THAT(answer, HasSubstr(" t3"));
  EXPECT_EQ(occurrences(answer, "data: {"), 3);
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n"));
  expect_nothing_held();
}

// Law: KV that is found lost in mid-stream ends the stream properly, with the events before and an error event; an
// answer in one piece is an error with its status.
TEST_F(FaultsTest, KvLostInMidStreamIsAnErrorEvent) {
  const auto answer = complete(port(), kEndless, demand("kv_loss:3")).raw;
  EXPECT_THAT(answer, HasSubstr(" t3"));
  EXPECT_EQ(occurrences(answer, "data: {"), 4);
  EXPECT_THAT(answer,
              HasSubstr(R"(data: {"error":{"message":"KV of the request was lost","type":"InternalServerError")"));
  EXPECT_THAT(answer, HasSubstr("data: [DONE]"));
  EXPECT_TRUE(answer.ends_with("0\r\n\r\n"));
  EXPECT_EQ(complete(port(), kShort, demand("kv_loss:3")).status(), 500);
  expect_nothing_held();
}

// Law: an answer in one piece breaks off in its middle.
TEST_F(FaultsTest, WholeAnswerDiesInItsMiddle) {
  const auto answer = complete(port(), kShort, demand("die_mid_stream")).raw;
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n"));
}

// Law: a stalled request stays open and silent until its client leaves, before the answer or in it.
TEST_F(FaultsTest, StalledRequestStaysOpen) {
  RawClient silent{port()};
  silent.send(http_request("POST", "/v1/completions", kStream, demand("stall")));
  RawClient stalls{port()};
  stalls.send(http_request("POST", "/v1/completions", kStream, demand("stall:2")));
  stalls.read_until(" t2");
  stats_when([](const json& now) { return now["tokens"] == 5 && now["active"] == 0; });
  EXPECT_EQ(occurrences(stalls.read_until(" t2"), "data: "), 2);
  EXPECT_EQ(met("stall"), 2);
}

// Law: an armed fault meets as many requests of its engine as it was armed for, and no other's.
TEST_F(FaultsTest, ArmedFaultIsOfOneEngine) {
  EXPECT_EQ(post(port(1), "/emulator/faults", R"({"fault": "status:500", "count": 2})").status(), 200);
  EXPECT_EQ(complete(port(0), kShort).status(), 200);
  EXPECT_EQ(complete(port(1), kShort).status(), 500);
  EXPECT_EQ(complete(port(1), kShort).status(), 500);
  EXPECT_EQ(complete(port(1), kShort).status(), 200);
  EXPECT_EQ(met("status"), 2);
}

TEST_F(FaultsTest, HealthFailsOnRequest) {
  post(port(1), "/emulator/faults", R"({"fault": "status:503", "count": 100, "path": "/health"})");
  EXPECT_EQ(get(port(1), "/health").status(), 503);
  EXPECT_EQ(complete(port(1), kShort).status(), 200);
  testing_support::http_exchange(port(1), "DELETE", "/emulator/faults");
  EXPECT_EQ(get(port(1), "/health").status(), 200);
}

TEST_F(FaultsTest, NamesWhatIsNoFault) {
  EXPECT_THAT(complete(port(), kShort, demand("explode")).error(), HasSubstr("fault 'explode': expected refuse"));
  EXPECT_THAT(post(port(), "/emulator/faults", R"({"fault": "explode"})").error(), HasSubstr("fault 'explode'"));
  EXPECT_THAT(post(port(), "/emulator/faults", R"({"fault": "reset", "count": 0})").error(), HasSubstr("count"));
  EXPECT_THAT(post(port(), "/emulator/faults", "reset").error(), HasSubstr("body: expected"));
  EXPECT_THAT(post(port(), "/emulator/restart", R"({"down_ms": -1})").error(), HasSubstr("down_ms = -1"));
}

// Law: a restart breaks streams, loses counters and changes the engine's id; others do not notice.
TEST_F(FaultsTest, RestartLosesEverything) {
  complete(port(1), kShort);
  RawClient stays{port(0)};
  stays.send(http_request("POST", "/v1/completions", kEndless));
  stays.read_until(" t1");
  RawClient breaks{port(1)};
  breaks.send(http_request("POST", "/v1/completions", kEndless));
  breaks.read_until(" t1");
  const auto before = state()["ranks"][1]["engine_id"];
  EXPECT_EQ(post(port(1), "/emulator/restart", "{}").status(), 200);
  EXPECT_THAT(breaks.read_to_end(), Not(HasSubstr("[DONE]")));
  const auto after =
      state_when([](const json& now) { return now["ranks"][1]["restarts"] == 1 && now["ranks"][1]["running"] == 0; });
  EXPECT_NE(after["ranks"][1]["engine_id"], before);
  EXPECT_EQ(after["ranks"][0]["running"], 1);
  EXPECT_THAT(get(port(1), "/metrics").raw, HasSubstr(R"(vllm:request_success_total{model_name="emulated",engine="1",)"
                                                      R"(finished_reason="length"} 0)"));
}

// Law: an engine that is down refuses connections, and takes them again on the same port when its time has come. One
// that was on its way in when the port closed is reset.
TEST_F(FaultsTest, RestartingEngineRefusesConnections) {
  post(port(1), "/emulator/restart", R"({"down_ms": 50})");
  const auto connects = [this] {
    try {
      RawClient client{port(1)};
      return true;
    } catch (const boost::system::system_error& failure) {
      EXPECT_THAT(failure.code(),
                  AnyOf(Eq(boost::asio::error::connection_refused), Eq(boost::asio::error::connection_reset)));
      return false;
    }
  };
  while (connects()) continue;
  while (!connects()) continue;
  EXPECT_EQ(complete(port(1), kShort).status(), 200);
}

}  // namespace
}  // namespace balanceroute::emulator
