// Laws of the pieces of a page: safe text, short numbers, scales of round numbers, lines where they belong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "sim/html/chart.hpp"
#include "sim/html/markup.hpp"

namespace balanceroute::sim::html {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Html, TextCannotBecomeMarkup) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
}

TEST(Html, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-0.0), "0");
  EXPECT_EQ(short_number(0.04171), "0.0417");
  EXPECT_EQ(short_number(1.5), "1.5");
  EXPECT_EQ(short_number(18.254), "18.25");
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(9'512.4), "9512");
  EXPECT_EQ(short_number(12'345), "12.3k");
  EXPECT_EQ(short_number(-2'500'000), "-2.5M");
}

// Law: a scale holds its values between ticks of 1, 2 or 5 times a power of ten, and begins at 0 if that is near.
TEST(Scales, AreRound) {
  const Scale far = round_scale(81'000, 103'000);
  EXPECT_THAT(far.ticks, ElementsAre(80'000, 85'000, 90'000, 95'000, 100'000, 105'000));
  EXPECT_EQ(far.low, 80'000);
  EXPECT_EQ(far.high, 105'000);
  EXPECT_DOUBLE_EQ(far.place(90'000), 0.4);
  EXPECT_EQ(round_scale(3, 10).low, 0);
  EXPECT_GT(round_scale(7, 7).high, 7);
  EXPECT_GT(round_scale(0, 0).high, 0);
}

TEST(Scales, OfTimeEndWithIt) {
  const Scale time = time_scale(17);
  EXPECT_EQ(time.high, 17);
  EXPECT_THAT(time.ticks, ElementsAre(0, 5, 10, 15));
}

// Law: values wide apart are spaced by their ratios.
TEST(Scales, OfValuesHaveATickAtEach) {
  const Scale wide = scale_of_values(std::array{16.0, 4.0, 8.0, 64.0, 4.0});
  EXPECT_THAT(wide.ticks, ElementsAre(4, 8, 16, 64));
  EXPECT_NEAR(wide.place(16), 0.5, 1e-12);
  const Scale near = scale_of_values(std::array{0.8, 1.1, 0.95});
  EXPECT_NEAR(near.place(0.95), 0.5, 1e-12);
  const Scale single = scale_of_values(std::array{8.0});
  EXPECT_NEAR(single.place(8), 0.5, 1e-12);
}

// Law: the canvas is 1000 by 500 and grows downwards; each point but the first is told by its distance.
TEST(LineChart, DrawsPointsWhereTheyBelong) {
  const LineChart chart{.title = "T",
                        .description = "D",
                        .x_title = "s",
                        .y_title = "ms",
                        .x = {.low = 0, .high = 10, .ticks = {0, 10}},
                        .y = {.low = 0, .high = 100, .ticks = {0, 50}},
                        .bands = {{.style = "b", .lower = {{0, 0}, {10, 0}}, .upper = {{0, 50}, {10, 100}}}},
                        .lines = {{.name = "one & only", .style = "v0", .points = {{0, 50}, {5, 100}, {10, 0}}}}};
  const std::string html = chart.html();
  EXPECT_THAT(html, HasSubstr("class=\"line v0\" d=\"M0 250l0 0 500 -250 500 500\"><title>one &amp; only</title>"));
  EXPECT_THAT(html, HasSubstr("class=\"band b\" d=\"M0 250l0 0 1000 -250 0 500 -1000 0z\""));
  EXPECT_THAT(html, HasSubstr("aria-label=\"T. D\""));
  EXPECT_THAT(html, HasSubstr("M0 500H1000M0 250H1000M0 0V500M1000 0V500"));
  EXPECT_THAT(html, HasSubstr("bottom:50.0%\">50<"));
}

// Law: a dot has its interval about it.
TEST(LineChart, DrawsIntervals) {
  const LineChart chart{.x = {.low = 0, .high = 2},
                        .y = {.low = 0, .high = 10},
                        .lines = {{.name = "n", .style = "v1", .points = {{1, 5, 2}}, .dots = true}}};
  EXPECT_THAT(chart.html(), HasSubstr("class=\"interval v1\" d=\"M500 350V150\""));
  EXPECT_THAT(chart.html(), HasSubstr("class=\"dot v1\" d=\"M500 250h0\"><title>n: 5 ± 2</title>"));
}

}  // namespace
}  // namespace balanceroute::sim::html
