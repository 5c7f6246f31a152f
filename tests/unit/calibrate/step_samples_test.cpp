#include "calibrate/step_samples.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace balanceroute::calibrate {
namespace {

class StepSamplesFile : public testing::Test {
 protected:
  ~StepSamplesFile() override { std::filesystem::remove(path_); }

  std::expected<StepSamples, std::string> read(const std::string& text) {
    std::ofstream{path_} << text;
    return read_step_samples(path_);
  }
  // What is wrong, without the folder.
  std::string fault(const std::string& text) {
    const auto samples = read(text);
    return samples ? "none" : samples.error().substr(path_.parent_path().string().size() + 1);
  }

  std::filesystem::path path_ = std::filesystem::path{testing::TempDir()} / "step_samples_test.csv";
};

// Law: columns are found by name, in any order and among others; line ends, spaces and quotes do not matter.
TEST_F(StepSamplesFile, ColumnsAreFoundByName) {
  const auto samples = read("\"max_tokens\", worker ,step_ms,total_tokens\r\n1000,a,12.5,8000\r\n\r\n0,b,1e1,0");
  ASSERT_TRUE(samples) << samples.error();
  EXPECT_EQ(samples->size(), 2u);
  EXPECT_EQ(samples->step_ms, (std::vector<double>{12.5, 10}));
  EXPECT_EQ(samples->max_tokens, (std::vector<double>{1000, 0}));
  EXPECT_EQ(samples->total_tokens, (std::vector<double>{8000, 0}));
  EXPECT_TRUE(samples->sequences.empty());
}

// Law: a fault is told with file, line, column, value and what was expected.
TEST_F(StepSamplesFile, FaultsAreNamed) {
  const std::string name = "step_samples_test.csv";
  EXPECT_EQ(fault(""), name + ": is empty; expected a line with the columns step_ms and max_tokens");
  EXPECT_EQ(fault("step_ms,tokens\n1,2\n"), name + ":1: no column 'max_tokens' in 'step_ms,tokens'");
  EXPECT_EQ(fault("step_ms,max_tokens\n1,2\n3\n"), name + ":3: has 1 fields, expected 2");
  EXPECT_EQ(fault("step_ms,max_tokens\n0,2\n"), name + ":2: step_ms: '0': expected a number above 0");
  EXPECT_EQ(fault("step_ms,max_tokens\n1,-2\n"), name + ":2: max_tokens: '-2': expected a number of at least 0");
  for (const std::string value : {"nan", "inf", "1e16", "1x", "", "0x10"}) {
    EXPECT_EQ(fault("step_ms,max_tokens\n1," + value + "\n"),
              name + ":2: max_tokens: '" + value + "': expected a number of at least 0");
  }
  EXPECT_FALSE(read_step_samples("/does/not/exist"));
}

}  // namespace
}  // namespace balanceroute::calibrate
