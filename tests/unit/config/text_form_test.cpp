#include "config/text_form.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute {
namespace {

// Law: exactly the characters of Unicode, each in its shortest form, are UTF-8.
TEST(TextForm, KnowsUtf8) {
  for (const std::string valid : {"", "a", "\u00e4", "\u20ac", "\U0001f600", "\U0010ffff", "\ud7ff", "\ue000"}) {
    EXPECT_EQ(utf8_prefix(valid), valid.size()) << valid;
  }
  for (const std::string broken : {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                   "\xf8\x88\x80\x80\x80", "\xff", "\xe2\x82"}) {
    EXPECT_EQ(utf8_prefix("ok" + broken), 2U) << testing::PrintToString(broken);
  }
  EXPECT_EQ(utf8_prefix("a\xff"
                        "b"),
            1U);
}

TEST(TextForm, ShowsValuesShortAndClear) {
  EXPECT_EQ(shown("load"), "load");
  EXPECT_EQ(shown(""), "\"\"");
  EXPECT_EQ(shown("a b"), "\"a b\"");
  EXPECT_EQ(shown("a\x1b[0m"), "\"a\\x1b[0m\"");
  EXPECT_EQ(shown(std::string(61, 'x')), std::string(60, 'x') + "...");
  EXPECT_EQ(shown(std::string(59, 'x') + "\u00e4"), std::string(59, 'x') + "...");  // no half characters
  EXPECT_EQ(shown("a\xff"
                  "b"),
            "\"a\\xffb\"");
}

// Law: only what every reader of YAML takes for a text goes without quotes.
TEST(TextForm, QuotesWhatIsNotPlainlyAText) {
  EXPECT_EQ(yaml_text("http://a.b:80/c"), "http://a.b:80/c");
  EXPECT_EQ(yaml_text("main"), "main");
  for (const std::string word : {"", "8080", "127.0.0.1:80", "No", "null", "~", "a: b", "a:", "a #b", "- a", "*a", "&a",
                                 "!a", "[a]", "a,b", "\u00e4", " a"}) {
    EXPECT_EQ(yaml_text(word), "\"" + word + "\"");
  }
  EXPECT_EQ(yaml_text("a\"\\\n\t\x01"), "\"a\\\"\\\\\\n\\x09\\x01\"");
}

}  // namespace
}  // namespace balanceroute
