#include "proxy/engine_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace balanceroute::proxy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class EngineKeyTest : public testing::Test {
 protected:
  ~EngineKeyTest() override { std::filesystem::remove(path_); }

  std::expected<std::string, std::string> read(const std::string& content) const {
    std::ofstream{path_, std::ios::trunc} << content;
    return read_engine_key({.file = path_, .variable = {}}, "fleets[0].engine_key");
  }

  std::string path_ = testing::TempDir() + "/br-engine-key-" + std::to_string(::getpid());
};

// Law: a file's one word is the key, whatever blanks are around it; without a setting there is none.
TEST_F(EngineKeyTest, IsTheOneWordOfItsFile) {
  EXPECT_EQ(read("secret"), "secret");
  EXPECT_EQ(read(" secret\r\n"), "secret");
  EXPECT_EQ(read_engine_key({}, ""), "");
}

// Law: what is no key is refused with the setting's name, and never repeated.
TEST_F(EngineKeyTest, NoFaultRepeatsIt) {
  for (const char* content : {"", "\n", "two secrets", "secret\nsecret", "sec\x01ret", "secr\xc3\xa9t"}) {
    const auto key = read(content);
    ASSERT_FALSE(key) << content;
    EXPECT_THAT(key.error(), AllOf(HasSubstr("fleets[0].engine_key.file = " + path_), Not(HasSubstr("secret"))));
  }
  const auto missing = read_engine_key({.file = path_ + "-none", .variable = {}}, "k");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error(), HasSubstr("k.file: " + path_ + "-none"));
}

// Law: a variable is as good as a file, but not beside one.
TEST_F(EngineKeyTest, MayBeInTheEnvironment) {
  const EngineKeyParams params{.file = {}, .variable = "BR_TEST_ENGINE_KEY"};
  ::unsetenv("BR_TEST_ENGINE_KEY");
  EXPECT_EQ(read_engine_key(params, "k").error(), "k.variable = BR_TEST_ENGINE_KEY: is not set in the environment");
  ::setenv("BR_TEST_ENGINE_KEY", "secret", 1);
  EXPECT_EQ(read_engine_key(params, "k"), "secret");
  ::setenv("BR_TEST_ENGINE_KEY", "not one secret", 1);
  EXPECT_THAT(read_engine_key(params, "k").error(), Not(HasSubstr("not one")));
  EXPECT_FALSE(read_engine_key({.file = "f", .variable = "v"}, "k"));
  ::unsetenv("BR_TEST_ENGINE_KEY");
}

// Law: the key takes the place of every one that a client sent; without a key nothing changes.
TEST_F(EngineKeyTest, TakesThePlaceOfTheClients) {
  net::HeaderList headers;
  headers.add("authorization", "Bearer client");
  headers.add("X-Api-Key", "client");
  headers.add("X-Other", "kept");
  EngineKey key{""};
  key.sign(headers);
  EXPECT_EQ(headers.size(), 3U);
  EXPECT_TRUE(key.replace("engine"));
  EXPECT_FALSE(key.replace("engine"));
  key.sign(headers);
  EXPECT_EQ(headers.size(), 2U);
  EXPECT_EQ(headers.find("Authorization"), "Bearer engine");
  EXPECT_EQ(headers.find("X-Other"), "kept");
}

}  // namespace
}  // namespace balanceroute::proxy
