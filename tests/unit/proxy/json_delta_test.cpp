#include "proxy/json_delta.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace balanceroute::proxy {
namespace {

using nlohmann::json;

TEST(JsonDelta, NothingHasChanged) {
  const json document = json::parse(R"({"a": {"b": [1, 2]}, "c": 3})");
  EXPECT_EQ(json_delta(document, document), json::object());
}

// Law: only what differs is named, at any depth; what is gone is null.
TEST(JsonDelta, NamesWhatDiffers) {
  const json before = json::parse(R"({"a": {"b": 1, "c": 2, "d": [1, 2]}, "e": 5, "f": 6})");
  const json after = json::parse(R"({"a": {"b": 1, "c": 3, "d": [1, 3]}, "e": 5, "g": {"h": 1}})");
  EXPECT_EQ(json_delta(before, after), json::parse(R"({"a": {"c": 3, "d": [1, 3]}, "f": null, "g": {"h": 1}})"));
}

// A document of objects, arrays and numbers, with few names so that two of them share some.
json drawn(std::mt19937& draw, int depth) {
  const auto kind = draw() % (depth > 0 ? 4 : 2);
  if (kind < 2) return draw() % 3;
  if (kind == 2) return json::array({draw() % 3, nullptr, draw() % 3});
  json object = json::object();
  for (const char* name : {"a", "b", "c"}) {
    if (draw() % 3 != 0) object[name] = drawn(draw, depth - 1);
  }
  return object;
}

// Law: the patch, applied to what was before, gives what is after.
TEST(JsonDelta, MakesTheOneOfTheOther) {
  std::mt19937 draw{3};
  for (int i = 0; i < 2000; ++i) {
    json before = drawn(draw, 4);
    const json after = drawn(draw, 4);
    const json patch = json_delta(before, after);
    json patched = before;
    patched.merge_patch(patch);
    ASSERT_EQ(patched, after) << before << " -> " << after << ": " << patch;
  }
}

}  // namespace
}  // namespace balanceroute::proxy
