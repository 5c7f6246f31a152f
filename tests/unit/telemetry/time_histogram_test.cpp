#include "telemetry/time_histogram.hpp"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "telemetry/metrics.hpp"

namespace balanceroute::telemetry {
namespace {

// Law: a time is in the first bucket whose end it does not exceed, and in all after it.
TEST(TimeHistogram, CountsUpToEachEnd) {
  TimeHistogram times;
  times.add(10e-6);
  times.add(11e-6);
  times.add(1);
  EXPECT_EQ(times.up_to(0), 1U);
  EXPECT_EQ(times.up_to(1), 2U);
  EXPECT_EQ(times.up_to(TimeHistogram::kEnds.size() - 1), 2U);
  EXPECT_EQ(times.count(), 3U);
  EXPECT_DOUBLE_EQ(times.sum(), 1.000021);
}

// Law: a scraper reads it as any other histogram.
TEST(TimeHistogram, IsAHistogramOfPrometheus) {
  TimeHistogram times;
  times.add(20e-6);
  prometheus::MetricFamily family = make_family("round_seconds", "Rounds.", prometheus::MetricType::Histogram);
  add_histogram(family, {{"fleet", "main"}}, times);
  const std::string text = prometheus::TextSerializer{}.Serialize({family});
  EXPECT_NE(text.find("round_seconds_count{fleet=\"main\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("round_seconds_bucket{fleet=\"main\",le=\"1e-05\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("round_seconds_bucket{fleet=\"main\",le=\"+Inf\"} 1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace balanceroute::telemetry
