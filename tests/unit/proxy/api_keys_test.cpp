#include "proxy/api_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace balanceroute::proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";  // of "abc"

std::string hash_of(std::string_view key) {
  return hex_of(sha256_of(key));
}

ApiKeys keys_of(const std::string& text) {
  auto keys = ApiKeys::parse(text, "keys.yaml");
  EXPECT_TRUE(keys) << keys.error();
  return keys ? *std::move(keys) : ApiKeys{};
}

std::string fault_of(const std::string& text) {
  const auto keys = ApiKeys::parse(text, "keys.yaml");
  return keys ? "" : keys.error();
}

// Law: the hash is SHA-256 as FIPS 180-2 writes it out.
TEST(ApiKeys, HashIsSha256) {
  EXPECT_EQ(hash_of("abc"), kAbc);
}

// Law: a key is found by what it hashes to, the one before it too; whatever else is not, and without entries nobody is.
TEST(ApiKeys, AreFoundByTheirHashes) {
  const ApiKeys keys =
      keys_of("keys:\n- {name: a, sha256: " + hash_of("one") + ", previous_sha256: " + hash_of("zero") +
              "}\n- {name: b, sha256: " + hash_of("two") + ", weight: 3}\n");
  EXPECT_TRUE(keys.needed());
  ASSERT_NE(keys.find("one"), nullptr);
  EXPECT_EQ(keys.find("one")->tenant.name, "a");
  EXPECT_EQ(keys.find("zero"), keys.find("one"));
  ASSERT_NE(keys.find("two"), nullptr);
  EXPECT_EQ(keys.find("two")->tenant.weight, 3);
  for (const std::string_view wrong : {"", "three", "one ", "On", "oneone"}) EXPECT_EQ(keys.find(wrong), nullptr);
  EXPECT_EQ(keys.find(hash_of("one")), nullptr);
  EXPECT_FALSE(ApiKeys{}.needed());
  EXPECT_EQ(ApiKeys{}.find("one"), nullptr);
}

// Law: a faulty file is refused with the place of the fault.
TEST(ApiKeys, RefuseAFaultyFile) {
  const std::string good = hash_of("k");
  EXPECT_THAT(fault_of("keys:\n- {name: a}\n"), HasSubstr("keys.yaml:2: keys[0].sha256: missing"));
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: " + good + ", weight: 0}\n"),
              HasSubstr("keys[0].weight = 0: expected"));
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: " + good + ", wait: 2}\n"), HasSubstr("keys[0].wait: unknown key"));
  for (const std::string_view name :
       {"a b", "default", "\"\"", "a/b", "a123456789012345678901234567890123456789012345678901234567890123456789"}) {
    EXPECT_THAT(fault_of("keys:\n- {name: " + std::string{name} + ", sha256: " + good + "}\n"),
                HasSubstr("keys[0].name"));
  }
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: " + good + "}\n- {name: a, sha256: " + hash_of("l") + "}\n"),
              HasSubstr("keys[1].name = a: expected a name that no other tenant has"));
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: " + good + "}\n- {name: b, sha256: " + good + "}\n"),
              HasSubstr("keys[1].sha256: is already the key of a"));
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: " + good.substr(1) + "}\n"), HasSubstr("keys[0].sha256: expected"));
  EXPECT_THAT(fault_of("keys:\n- {name: a, sha256: g" + good.substr(1) + "}\n"), HasSubstr("keys[0].sha256: expected"));
}

// Law: whatever is written where hashes should be, a message does not repeat it; and nothing at all is no list of keys.
TEST(ApiKeys, NoFaultRepeatsASecret) {
  const std::string secret = "br-secret";
  const std::vector<std::string> texts{
      secret,         "",
      "- " + secret,  "keys: " + secret,
      "keys:\n",      "keys: [" + secret + "]",
      "keys: []",     "keys:\n- {name: a, sha256: " + secret + "}",
      "[" + secret,   "keys:\n- {name: a, sha256: [" + secret + "]}",
      "k: " + secret, "keys:\n- {name: a, sha256: \"" + hash_of("k") + "\", previous_sha256: " + secret + "}",
      "*" + secret};
  for (const std::string& text : texts) {
    EXPECT_NE(fault_of(text), "") << text;
    EXPECT_THAT(fault_of(text), Not(HasSubstr(secret)));
  }
}

// Law: a drawn key is as long as 256 bits are, never the same, and its entry lets it in.
TEST(ApiKeys, DrawnKeysAreTheirOwn) {
  const std::string key = new_api_key();
  EXPECT_EQ(key.size(), 3 + 64U);
  EXPECT_NE(key, new_api_key());
  EXPECT_NE(keys_of("keys:\n- {name: a, sha256: " + hash_of(key) + "}\n").find(key), nullptr);
}

// Law: what differs between two files is told by name.
TEST(ApiKeys, DifferencesAreTold) {
  const ApiKeys before =
      keys_of("keys:\n- {name: a, sha256: " + hash_of("1") + "}\n- {name: b, sha256: " + hash_of("2") +
              "}\n- {name: c, sha256: " + hash_of("3") + "}\n");
  const ApiKeys after =
      keys_of("keys:\n- {name: d, sha256: " + hash_of("1") + "}\n- {name: b, sha256: " + hash_of("9") +
              "}\n- {name: c, sha256: " + hash_of("3") + "}\n");
  EXPECT_THAT(changed_keys(before, after), ElementsAre("key d (new)", "key b (changed)", "key a (removed)"));
  EXPECT_THAT(changed_keys(after, after), ElementsAre());
}

}  // namespace
}  // namespace balanceroute::proxy
