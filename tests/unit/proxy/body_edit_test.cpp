// Laws of body edits: what a leg wants is there once, what it must not have is gone, everything else is untouched.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "proxy/dialects/dialect.hpp"
#include "proxy/dialects/layerwise_dialect.hpp"
#include "proxy/dialects/room_dialect.hpp"
#include "proxy/request_body.hpp"

namespace balanceroute::proxy {
namespace {

std::string prefill_body(const std::string& body, DialectKind kind = DialectKind::VllmNixl,
                         const Handover& handover = {}) {
  const auto read = read_generation_body(body, GenerationKind::TextCompletion);
  EXPECT_TRUE(read) << read.error().message << " in " << body;
  BodyEdit edit{body, *read};
  make_dialect(kind)->edit_prefill(edit, *read, handover);
  return std::move(edit).apply();
}

std::string decode_body(const std::string& body, DialectKind kind, const Handover& handover) {
  const auto read = read_generation_body(body, GenerationKind::TextCompletion);
  EXPECT_TRUE(read) << read.error().message << " in " << body;
  BodyEdit edit{body, *read};
  make_dialect(kind)->edit_decode(edit, *read, handover);
  return std::move(edit).apply();
}

const std::string kMarker =
    R"("kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
    R"("remote_block_ids":null,"remote_host":null,"remote_port":null})";

TEST(BodyEdit, PrefillAsksForOneTokenInOnePiece) {
  EXPECT_EQ(prefill_body(R"({"model":"m"})"), R"({"model":"m","max_tokens":1,)" + kMarker + "}");
  EXPECT_EQ(prefill_body(R"({ "stream" : true, "max_tokens": 5e2 , "model":"m" } )"),
            R"({ "stream" : false, "max_tokens": 1 , "model":"m" ,)" + kMarker + "} ");
  EXPECT_EQ(prefill_body(R"({"n":1,"stream_options":{"include_usage":true},"max_completion_tokens":9,"model":"m"})"),
            R"({"n":1,"max_completion_tokens":1,"model":"m","max_tokens":1,)" + kMarker + "}");
}

// Law: members that are left out take one comma with them, wherever they stand.
TEST(BodyEdit, MembersAreLeftOutWhereverTheyStand) {
  const std::string end = R"("max_tokens":1,)" + kMarker + "}";
  EXPECT_EQ(prefill_body(R"({"min_tokens":3,"model":"m","x":[{}]})"), R"({"model":"m","x":[{}],)" + end);
  EXPECT_EQ(prefill_body(R"({"model":"m" , "min_tokens" : 3 , "x":"}"})"), R"({"model":"m" , "x":"}",)" + end);
  EXPECT_EQ(prefill_body(R"({"model":"m","min_tokens":3})"), R"({"model":"m",)" + end);
  EXPECT_EQ(prefill_body(R"({"model":"m","min_tokens":3,"stream_options":{},"min_completion_tokens":1 })"),
            R"({"model":"m",)" + end);
  EXPECT_EQ(prefill_body(R"({"min_tokens":3,"stream_options":null,"model":"m"})"), R"({"model":"m",)" + end);
}

// Law: an object that an engine wrote reaches the other one byte by byte.
TEST(BodyEdit, RelayedObjectsAreNotReworded) {
  Handover handover;
  handover.object = R"({ "a":1.50e+3,"big":18446744073709551557,"ids":[[1,2],[]] , "u":"\u00e9"})";
  EXPECT_EQ(decode_body(R"({"model":"m","stream":true})", DialectKind::VllmNixl, handover),
            R"({"model":"m","stream":true,"kv_transfer_params":)" + handover.object + "}");
  EXPECT_EQ(decode_body(R"({"model":"m" })", DialectKind::AscendMooncake, {}), R"({"model":"m" })");
}

TEST(BodyEdit, RoomsAreSingleOrListsAsThePromptsAre) {
  const PrefillPeer peer{.endpoint = {"10.0.0.1", 30000}, .rank = 1, .ranks = 4, .bootstrap_port = 8998};
  Handover handover;
  handover.prefill = &peer;
  handover.rooms = {5};
  EXPECT_EQ(decode_body(R"({"model":"m","prompt":"a"})", DialectKind::Sglang, handover),
            R"({"model":"m","prompt":"a","bootstrap_host":"10.0.0.1","bootstrap_port":8998,"bootstrap_room":5})");
  handover.rooms = {5, 9};
  const std::string two = R"({"model":"m","prompt":["a","b"]})";
  EXPECT_EQ(decode_body(two, DialectKind::Sglang, handover), prefill_body(two, DialectKind::Sglang, handover));
  EXPECT_EQ(decode_body(two, DialectKind::Sglang, handover),
            R"({"model":"m","prompt":["a","b"],"bootstrap_host":["10.0.0.1","10.0.0.1"],)"
            R"("bootstrap_port":[8998,8998],"bootstrap_room":[5,9]})");
}

// Law: rooms say the peer's rank, are never negative and practically never repeat.
TEST(Rooms, SayTheRankOfTheirPeer) {
  std::mt19937_64 random{3};
  const PrefillPeer peer{.endpoint = {"h", 1}, .rank = 2, .ranks = 3};
  auto rooms = fresh_rooms(peer, 1000, random);
  for (const std::int64_t room : rooms) {
    EXPECT_GE(room, 0);
    EXPECT_EQ(room % 3, 2);
  }
  std::ranges::sort(rooms);
  EXPECT_EQ(std::ranges::adjacent_find(rooms), rooms.end());
}

TEST(Callbacks, ChildIdsNameTheirRequest) {
  EXPECT_EQ(request_of_child("chatcmpl-0123abcd"), "0123abcd");
  EXPECT_EQ(request_of_child("cmpl-0123abcd-4"), "0123abcd");
  EXPECT_EQ(request_of_child("0123abcd"), "0123abcd");
}

// Law: asking for usage in every event adds both options and leaves others alone.
TEST(BodyEdit, ContinuousUsageIsAskedFor) {
  const auto asked = [](const std::string& body) {
    const auto read = read_generation_body(body, GenerationKind::TextCompletion);
    BodyEdit edit{body, *read};
    edit.ask_for_usage(true);
    return std::move(edit).apply();
  };
  EXPECT_EQ(asked(R"({"model":"m"})"),
            R"({"model":"m","stream_options":{"include_usage":true,"continuous_usage_stats":true}})");
  EXPECT_EQ(asked(R"({"stream_options":{ "x":1,"include_usage":false},"model":"m"})"),
            R"({"stream_options":{"continuous_usage_stats":true, "x":1,"include_usage":true},"model":"m"})");
  EXPECT_EQ(asked(R"({"stream_options":{"continuous_usage_stats":false,"include_usage":true},"model":"m"})"),
            R"({"stream_options":{"continuous_usage_stats":true,"include_usage":true},"model":"m"})");
  EXPECT_EQ(asked(R"({"stream_options":null,"model":"m"})"),
            R"({"stream_options":{"include_usage":true,"continuous_usage_stats":true},"model":"m"})");
}

// A random body, with members that nobody knows and text that a careless reader would trip over.
std::string random_body(std::mt19937_64& random) {
  const std::vector<std::string> odd_values{"1.50",
                                            "-0",
                                            "1e400",
                                            "123456789012345678901234567890",
                                            "[1, [2,{}] ,3]",
                                            R"("}{\",\\")",
                                            R"("\u00e9\ud83d\ude00")",
                                            "null",
                                            "true",
                                            R"({"stream":true,"max_tokens":7,"min_tokens":[]})",
                                            R"("")",
                                            "{ }",
                                            "[]"};
  const auto blank = [&random] { return std::string(random() % 3, " \n\t"[random() % 3]); };
  std::vector<std::string> members{R"("model")" + blank() + ":" + blank() + R"("m")"};
  const auto maybe = [&](const std::string& name, const std::vector<std::string>& values) {
    if (random() % 2 == 0)
      members.push_back("\"" + name + "\"" + blank() + ":" + blank() + values[random() % values.size()]);
  };
  maybe("prompt", {R"("once, \"upon\" {a}")", "[1,2,3]", R"(["a","b"])"});
  maybe("stream", {"true", "false", "null"});
  maybe("stream_options", {"null", "{}", R"({"include_usage":true})", R"({ "x" : [1,{}] })"});
  maybe("max_tokens", {"5", "1e2", "null"});
  maybe("max_completion_tokens", {"7", "null"});
  maybe("min_tokens", {"3", "0"});
  maybe("min_completion_tokens", {"2"});
  maybe("n", {"1", "null"});
  for (std::size_t i = random() % 5; i > 0; --i) {
    members.push_back("\"k" + std::to_string(i) + R"(\"é")" + blank() + ":" + odd_values[random() % odd_values.size()]);
  }
  std::ranges::shuffle(members, random);
  std::string body = blank() + "{" + blank();
  for (std::size_t i = 0; i < members.size(); ++i) body += (i == 0 ? "" : blank() + "," + blank()) + members[i];
  return body + blank() + "}" + blank();
}

// The members of a body in order, with the text of each value.
std::vector<std::pair<std::string, std::string>> members_of(const std::string& body) {
  // Text of values survives as such: numbers are quoted before parsing, outside of strings.
  std::string quoted;
  bool in_string = false;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string && c == '\\') {
      quoted.append(body, i++, 2);
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (!in_string && (c == '-' || (c >= '0' && c <= '9'))) {
      const auto end = body.find_first_not_of("0123456789+-.eE", i);
      quoted += "\"number " + body.substr(i, end - i) + "\"";
      i = end - 1;
      continue;
    }
    quoted.push_back(c);
  }
  std::vector<std::pair<std::string, std::string>> members;
  const auto json = nlohmann::ordered_json::parse(quoted);
  for (const auto& [name, value] : json.items()) members.emplace_back(name, value.dump());
  return members;
}

// Law: a random body reaches the prefill engine with one token asked for and no member of another kind changed, and the
// decode engine with nothing but the object added.
TEST(BodyEdit, RandomBodiesKeepWhatIsNotEdited) {
  std::mt19937_64 random{11};
  Handover handover;
  handover.object = R"({"big":18446744073709551557, "x":1.0})";
  for (int round = 0; round < 3000; ++round) {
    const std::string body = random_body(random);
    const auto before = members_of(body);

    const std::string decode = decode_body(body, DialectKind::VllmNixl, handover);
    std::string without = decode;
    const std::string added = R"(,"kv_transfer_params":)" + handover.object;
    ASSERT_NE(without.find(added), std::string::npos) << decode;
    without.erase(without.find(added), added.size());
    ASSERT_EQ(without, body);

    const auto after = members_of(prefill_body(body));
    std::vector<std::pair<std::string, std::string>> expected;
    bool limited = false;
    for (auto [name, value] : before) {
      if (name == "stream_options" || name == "min_tokens" || name == "min_completion_tokens") continue;
      if (name == "stream") value = "false";
      if (name == "max_tokens" || name == "max_completion_tokens" || name == "n") value = "\"number 1\"";
      limited = limited || name == "max_tokens";
      expected.emplace_back(name, value);
    }
    if (!limited) expected.emplace_back("max_tokens", "\"number 1\"");
    expected.emplace_back("kv_transfer_params", after.back().second);
    ASSERT_EQ(after, expected) << body;
  }
}

}  // namespace
}  // namespace balanceroute::proxy
