// What the router keeps of requests that are over, and what it makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "history/reader.hpp"
#include "support/clocked_router.hpp"
#include "support/fake_worker.hpp"
#include "support/finished_requests.hpp"
#include "support/temporary_folder.hpp"

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;
using testing_support::chunk;
using testing_support::FakeWorker;
using testing_support::kDone;
using testing_support::kFinish;
using testing_support::start_stream;

const std::string kAsked = "albatross";
const std::string kAnswered = "bumblebee";

std::string chat_of(const std::string& word, const std::string& more = "") {
  return R"({"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":")" + word +
         R"("}],"max_tokens":50)" + more + "}";
}

net::asio::awaitable<void> answer(net::HttpExchange& exchange) {
  if (exchange.request().body.find("stream\":true") != std::string::npos) {
    start_stream(exchange);
    exchange.write(chunk(kAnswered) + chunk("two") + kFinish +
                   R"(data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":2,)"
                   R"("prompt_tokens_details":{"cached_tokens":8}}})" +
                   "\n\n" + kDone);
    co_await exchange.finish();
    co_return;
  }
  const std::string whole = R"({"choices":[{"message":{"content":")" + kAnswered +
                            R"("},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":3}})";
  co_await exchange.respond(net::json_response(200, whole));
}

class History : public ClockedRouter {
 protected:
  void serve_with_history(const Change& more = [](ServeParams&) {}) {
    serve({worker_.port()}, [&](ServeParams& params) {
      params.history.path = path_;
      more(params);
    });
    asked_ = 0;
  }
  // The answer, once its row is there. The clock stands meanwhile, so that rows are in the order of the calls.
  std::string ask_in_turn(const std::string& body) {
    const std::string answered = ask_later(kChat, body).get();
    ++asked_;
    EXPECT_TRUE(soon([&] {
      const double written = metric("balanceroute_history_written_total");
      return written + metric("balanceroute_history_queued_requests") >= asked_;
    }));
    return answered;
  }
  // What the router has kept, once it has ended.
  std::vector<history::Record> kept() {
    service_.reset();
    std::vector<history::Record> records;
    const auto read = history::Reader::open(path_)->each({}, [&](const auto& record) { records.push_back(record); });
    EXPECT_TRUE(read);
    return records;
  }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  int asked_ = 0;
  testing_support::TemporaryFolder folder_;
  std::string path_ = (folder_ / "history.db").string();
  FakeWorker worker_{answer};
};

// Law: a finished request is one row: when, where, how many tokens, under which limit, and how it ended.
TEST_F(History, KeepsWhatIsKnownOfARequest) {
  serve_with_history();
  EXPECT_EQ(status_in(ask_in_turn(chat_of(kAsked, R"(,"stream":true)"))), 200);
  EXPECT_EQ(status_in(ask_in_turn(chat_of(kAsked))), 200);
  EXPECT_EQ(status_in(ask_in_turn(chat_of("other", R"(,"n":1000)"))), 400);
  const auto records = kept();
  ASSERT_EQ(records.size(), 3U);
  const history::Record& streamed = records[0];
  EXPECT_EQ(streamed.fleet, "default");
  EXPECT_EQ(streamed.group, "g");
  EXPECT_EQ(streamed.worker, "127.0.0.1:" + std::to_string(worker_.port()));
  EXPECT_EQ(streamed.policy, "round_robin");
  EXPECT_EQ(streamed.outcome, "ok");
  EXPECT_TRUE(streamed.complete);
  EXPECT_EQ(streamed.status, 200);
  EXPECT_EQ(streamed.prompt, Tokens{12});
  EXPECT_EQ(streamed.output, Tokens{2});
  EXPECT_EQ(streamed.cached, Tokens{8});
  EXPECT_EQ(streamed.output_limit, Tokens{50});
  EXPECT_TRUE(streamed.first_token && streamed.pool_wait);
  EXPECT_EQ(records[1].prompt, Tokens{11});
  EXPECT_EQ(records[1].output, Tokens{3});
  const history::Record& refused = records[2];
  EXPECT_EQ(refused.status, 400);
  EXPECT_FALSE(refused.complete);
  EXPECT_EQ(refused.worker, "");
  EXPECT_EQ(refused.output, Tokens{0});
}

// Law: equal prompts are known to be equal, after a restart too; openings as well. Another installation has other keys.
TEST_F(History, KnowsPromptsAgain) {
  serve_with_history();
  ask_in_turn(chat_of("a"));
  ask_in_turn(chat_of("b"));
  const auto first = kept();
  serve_with_history();
  ask_in_turn(chat_of("a"));
  const auto all = kept();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].prompt_key, first[0].prompt_key);
  EXPECT_NE(all[2].prompt_key, first[1].prompt_key);
  EXPECT_EQ(all[2].opening_key, first[1].opening_key);
  path_ = (folder_ / "other.db").string();
  serve_with_history();
  ask_in_turn(chat_of("a"));
  EXPECT_NE(kept().front().prompt_key, first[0].prompt_key);
}

// Law: no word of a prompt or an answer is in any file.
TEST_F(History, KeepsNoContent) {
  serve_with_history();
  ask(kChat, chat_of(kAsked));
  ask(kChat, chat_of(kAsked, R"(,"stream":true)"));
  for (const char* name : {"history.db", "history.db-wal", "history.db.key"}) {
    const std::string text = content(folder_ / name);
    EXPECT_THAT(text, Not(HasSubstr(kAsked))) << name;
    EXPECT_THAT(text, Not(HasSubstr(kAnswered))) << name;
  }
  ASSERT_EQ(kept().size(), 2U);
  EXPECT_THAT(content(path_), Not(HasSubstr(kAsked)));
}

// Law: without a path nothing is kept, and no metric speaks of it.
TEST_F(History, IsOffWithoutAPath) {
  serve({worker_.port()});
  EXPECT_EQ(status_in(ask(kChat, chat_of(kAsked))), 200);
  EXPECT_THAT(testing_support::http_exchange(service_->admin_port(), "GET", "/metrics"),
              Not(HasSubstr("balanceroute_history_")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

// Law: while another process holds the file requests are answered as ever, and are written once it is free.
TEST_F(History, IsLockedAndRequestsGoOn) {
  serve_with_history();
  auto other = history::Database::open(path_, history::Database::Use::read_or_write, 10s);
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status_in(ask(kChat, chat_of(kAsked))), 200);
  EXPECT_TRUE(soon([&] { return metric("balanceroute_history_queued_requests") == 5; }));
  EXPECT_EQ(metric("balanceroute_history_written_total"), 0);
  ASSERT_TRUE(other->execute("COMMIT"));
  EXPECT_EQ(kept().size(), 5U);
}

// Law: a history that cannot be had is a line of the log; the router starts and serves.
TEST_F(History, CannotBeHadAndRequestsGoOn) {
  path_ = (folder_ / "nowhere" / "history.db").string();
  serve_with_history();
  EXPECT_EQ(status_in(ask(kChat, chat_of(kAsked))), 200);
  EXPECT_THAT(log_->text(), HasSubstr("history cannot be written"));
  EXPECT_GE(metric("balanceroute_history_faults_total"), 1);
}

// Law: at a start a fleet learns from its own latest requests, no more than the settings say, and not from others'.
TEST_F(History, WarmsItsFleetAtAStart) {
  auto past = testing_support::finished_requests(400);
  for (std::size_t i = 0; i < past.size(); ++i) past[i].fleet = i < 100 ? "other" : "default";
  ASSERT_TRUE(history::Store::open(path_, {.max_age = std::chrono::days{36'500}}, 0ms)->append(past));
  serve_with_history([](ServeParams& params) {
    params.history.warm_start_requests = 250;
    params.history.max_age_days = 3650;
  });
  EXPECT_THAT(log_->text(), HasSubstr("fleet=default learned from 250 requests of its history"));
  service_.reset();
  serve_with_history([](ServeParams& params) { params.history.warm_start_requests = 0; });
  EXPECT_THAT(log_->text(), HasSubstr("learned from 0 requests"));
}

// Law: the predictor exact_match knows prompts again, and tells how many.
TEST_F(History, ExactMatchKnowsPromptsWithoutAHistory) {
  FakeWorker second{answer};
  serve({worker_.port(), second.port()}, [](ServeParams& params) {
    params.fleets[0].barrier = true;
    params.fleets[0].policy.name = "br_h";
    params.fleets[0].policy.predictor.name = "exact_match";
    params.fleets[0].policy.predictor.key_min_requests = 1;
  });
  for (int i = 0; i < 103; ++i) ask(kChat, chat_of("again"));
  ask(kChat, chat_of("once"));
  EXPECT_TRUE(soon([&] { return metric("balanceroute_predictor_key_requests_total") == 104; }));
  EXPECT_GE(metric("balanceroute_predictor_key_hits_total"), 2);
  EXPECT_LT(metric("balanceroute_predictor_key_hits_total"), 104);
}

}  // namespace
}  // namespace balanceroute::proxy
