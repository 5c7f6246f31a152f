#include "history/keyed_hash.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "support/temporary_folder.hpp"

namespace balanceroute::history {
namespace {

using ::testing::HasSubstr;
using testing_support::TemporaryFolder;
using Parts = std::vector<std::string_view>;

// Law: equal texts have equal numbers under one key; other texts, other cuts and other keys have others.
TEST(KeyedHash, StandsForTextAndKey) {
  const KeyedHash hash{HashKey{1}};
  const std::uint64_t value = hash.of(Parts{"Hello", "world"});
  EXPECT_EQ(hash.of(Parts{"Hello", "world"}), value);
  EXPECT_EQ(KeyedHash{HashKey{1}}.of(Parts{"Hello", "world"}), value);
  EXPECT_NE(hash.of(Parts{"Hellow", "orld"}), value);
  EXPECT_NE(hash.of(Parts{"Hello", "World"}), value);
  EXPECT_NE(KeyedHash{HashKey{2}}.of(Parts{"Hello", "world"}), value);
  EXPECT_NE(value, 0U);
}

// Law: it is the first eight bytes of HMAC-SHA256 over each part after its length, so that files stay comparable from
// release to release. The value is Python's.
TEST(KeyedHash, NeverChanges) {
  HashKey key{};
  key.fill(0x0b);
  EXPECT_EQ(KeyedHash{key}.of(Parts{"Hi There"}), 9262318695052774998U);
}

// Law: the key is drawn once, and is its owner's alone.
TEST(InstalledKey, IsDrawnOnce) {
  const TemporaryFolder folder;
  const auto first = installed_key(folder / "h.key");
  ASSERT_TRUE(first) << first.error();
  EXPECT_EQ(installed_key(folder / "h.key"), first);
  EXPECT_NE(installed_key(folder / "other.key"), first);
  struct stat about{};
  ASSERT_EQ(::stat((folder / "h.key").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 2) << "nothing else is left";
}

// Law: a file that is no key, or no place for one, is an error that names it; nothing is overwritten.
TEST(InstalledKey, RefusesWhatIsNoKey) {
  const TemporaryFolder folder;
  std::ofstream{folder / "h.key"} << "secret";
  const auto key = installed_key(folder / "h.key");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error(), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(key.error(), ::testing::Not(HasSubstr("secret")));
  const auto nowhere = installed_key(folder / "no" / "h.key");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error(), HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace balanceroute::history
