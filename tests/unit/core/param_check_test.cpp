#include "core/param_check.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace balanceroute {
namespace {

struct Inner {
  std::int64_t depth = 1;
  void visit_params(ParamVisitor& visitor) { visitor.integer({"depth", "Depth."}, depth, {0, 3}); }
};

struct Settings {
  std::int64_t count = 5;
  double share = 0.5;
  bool on = true;
  std::string title = "x";
  std::string kind = "small";
  std::int64_t threshold = -1;
  double weight = -1;
  std::vector<std::string> hosts{"a"};
  std::vector<std::int64_t> counts{1, 2};
  std::vector<double> shares{0.5};
  std::vector<std::string> kinds{"small", "large"};
  Inner inner;
  std::vector<Inner> list{Inner{}};

  void visit_params(ParamVisitor& visitor) {
    static constexpr std::array<std::string_view, 2> kKinds{"small", "large"};
    visitor.integer({"count", "Count."}, count, {1, 10});
    visitor.real({"share", "Share."}, share, {0, 1});
    visitor.flag({"on", "On."}, on);
    visitor.text({.name = "title", .doc = "Title.", .required = true}, title);
    visitor.choice({"kind", "Kind."}, kind, kKinds);
    visitor.integer_or_auto({"threshold", "Threshold."}, threshold, -1, {0, 9});
    visitor.real_or_auto({"weight", "Weight."}, weight, -1, {0, 2});
    visitor.texts({.name = "hosts", .doc = "Hosts.", .required = true}, hosts);
    visitor.integers({"counts", "Counts."}, counts, {1, 10});
    visitor.reals({"shares", "Shares."}, shares, {0, 1});
    visitor.choices({"kinds", "Kinds."}, kinds, kKinds);
    visitor.nested({"inner", "Inner."}, inner);
    visitor.nested_list({.name = "list", .doc = "List.", .required = true}, list);
  }
};

template <class Change>
std::string fault_after(Change change) {
  Settings settings;
  change(settings);
  return first_fault(settings, "part.").value_or("");
}

TEST(ParamCheck, DefaultsAndLimitsAreFine) {
  EXPECT_EQ(fault_after([](Settings&) {}), "");
  EXPECT_EQ(fault_after([](Settings& s) { s.count = 10, s.share = 1, s.threshold = 9; }), "");
}

// Law: a list is checked value by value, and is never empty.
TEST(ParamCheck, ChecksEachValueOfAList) {
  EXPECT_EQ(fault_after([](Settings& s) { s.counts = {10, 11}; }), "part.counts = 11: expected 1..10");
  EXPECT_EQ(fault_after([](Settings& s) { s.shares = {0, -1}; }), "part.shares = -1: expected 0..1");
  EXPECT_EQ(fault_after([](Settings& s) { s.kinds = {"huge"}; }), "part.kinds = huge: expected one of small, large");
  EXPECT_EQ(fault_after([](Settings& s) { s.counts = {}; }), "part.counts = []: expected at least one value");
}

// Law: a message names the setting, its value and what was expected.
TEST(ParamCheck, MessagesNameSettingValueAndRange) {
  EXPECT_EQ(fault_after([](Settings& s) { s.count = 0; }), "part.count = 0: expected 1..10");
  EXPECT_EQ(fault_after([](Settings& s) { s.share = 1.5; }), "part.share = 1.5: expected 0..1");
  EXPECT_EQ(fault_after([](Settings& s) { s.share = std::nan(""); }), "part.share = nan: expected 0..1");
  EXPECT_EQ(fault_after([](Settings& s) { s.title = ""; }), "part.title = \"\": expected a text");
  EXPECT_EQ(fault_after([](Settings& s) { s.kind = "big"; }), "part.kind = big: expected one of small, large");
  EXPECT_EQ(fault_after([](Settings& s) { s.threshold = 10; }), "part.threshold = 10: expected 0..9 or auto");
  EXPECT_EQ(fault_after([](Settings& s) { s.weight = 3; }), "part.weight = 3: expected 0..2 or auto");
  EXPECT_EQ(fault_after([](Settings& s) { s.weight = std::nan(""); }), "part.weight = nan: expected 0..2 or auto");
  EXPECT_EQ(fault_after([](Settings& s) { s.hosts.clear(); }), "part.hosts = []: expected at least one text");
  EXPECT_EQ(fault_after([](Settings& s) { s.inner.depth = 4; }), "part.inner.depth = 4: expected 0..3");
  EXPECT_EQ(fault_after([](Settings& s) { s.list.push_back({-1}); }), "part.list[1].depth = -1: expected 0..3");
  EXPECT_EQ(fault_after([](Settings& s) { s.list.clear(); }), "part.list = []: expected at least one entry");
}

// Law: of several faults the first declared is told.
TEST(ParamCheck, TheFirstFaultIsTold) {
  EXPECT_EQ(fault_after([](Settings& s) { s.count = 11, s.kind = "big"; }), "part.count = 11: expected 1..10");
}

}  // namespace
}  // namespace balanceroute
