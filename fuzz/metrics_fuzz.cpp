// metrics_fuzz.cpp - any bytes are a metrics page: read at once it says what its lines say one by one, and an engine is
// never thought to have restarted between a page and itself.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/engine_metrics.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

struct Sample {
  std::string name;
  std::string labels;
  std::uint64_t value;  // its bits: a page may say NaN
  std::string engine;
  friend bool operator==(const Sample&, const Sample&) = default;
};

std::vector<Sample> samples_of(std::string_view page) {
  std::vector<Sample> samples;
  proxy::read_metric_samples(page, [&](const proxy::MetricSample& one) {
    samples.push_back({std::string{one.name}, std::string{one.labels}, std::bit_cast<std::uint64_t>(one.value),
                       one.label("engine").value_or("none")});
  });
  return samples;
}

std::vector<Sample> samples_by_line(std::string_view page) {
  std::vector<Sample> samples;
  while (!page.empty()) {
    const auto end = page.find('\n');
    const auto of_line = samples_of(page.substr(0, end));
    require(of_line.size() <= 1);
    samples.insert(samples.end(), of_line.begin(), of_line.end());
    if (end == std::string_view::npos) break;
    page.remove_prefix(end + 1);
  }
  return samples;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view page{reinterpret_cast<const char*>(data), size};
  require(samples_of(page) == samples_by_line(page));
  const proxy::EngineReading reading = proxy::read_engine_metrics(page);
  require(!proxy::restarted_between(reading, reading));
  return 0;
}
