// What `config show` writes is a configuration: reading it back gives the same values, whatever they are.
#include "config/show.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "config/yaml_reader.hpp"
#include "support/property.hpp"
#include "unit/config/example_params.hpp"

namespace balanceroute {
namespace {

// Texts of UTF-8: any ASCII character, or one of what is special to YAML or outside ASCII.
rc::Gen<std::string> any_text() {
  static const std::vector<std::string> kSpecial{": ",     " #",     "- ",     "null",   "true",      "~",
                                                 "---",    "...",    "1e5",    "0x1f",   "<<",        "\r\n",
                                                 "\u00e4", "\u2028", "\u0085", "\ufeff", "\U0001f600"};
  const auto codes =
      rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 0x80 + 2 * static_cast<int>(kSpecial.size())));
  return rc::gen::map(rc::gen::resize(20, codes), [](const std::vector<int>& pieces) {
    std::string text;
    for (const int code : pieces) {
      const auto special = static_cast<std::size_t>(code - 0x80) % kSpecial.size();
      text += code < 0x80 ? std::string(1, static_cast<char>(code)) : kSpecial[special];
    }
    return text;
  });
}

rc::Gen<std::string> some_text() {
  return rc::gen::suchThat(any_text(), [](const std::string& text) { return !text.empty(); });
}

// From the smallest to the largest, each order of magnitude alike.
double any_timeout() {
  const int exponent = *rc::gen::inRange(-320, 5);
  const double digits = *rc::gen::inRange<std::int32_t>(0, 1'000'000'000) / 1e8;
  return std::min(60'000.0, digits * std::pow(10.0, exponent));
}

example::FleetParams any_fleet() {
  example::FleetParams fleet{.name = *some_text(),
                             .aliases = *rc::gen::resize(5, rc::gen::container<std::vector<std::string>>(any_text()))};
  fleet.policy = {.order = *rc::gen::element<std::string>("load", "capacity"),
                  .r_max = *rc::gen::inRange<std::int64_t>(1, 65),
                  .threshold = *rc::gen::inRange<std::int64_t>(-1, 1001)};
  const int workers = *rc::gen::inRange(1, 4);
  for (int w = 0; w < workers; ++w) {
    fleet.workers.push_back({.url = *some_text(), .start_rank = *rc::gen::inRange<std::int64_t>(0, 65'536)});
  }
  return fleet;
}

example::Params any_params() {
  example::Params params{.listen = *any_text()};
  params.limits = {.body_bytes = *rc::gen::inRange<std::int64_t>(1, 1'000'001),
                   .timeout_ms = any_timeout(),
                   .strict = *rc::gen::arbitrary<bool>()};
  const int fleets = *rc::gen::inRange(0, 3);
  for (int f = 0; f < fleets; ++f) params.fleets.push_back(any_fleet());
  return params;
}

// Law: read(show(values)) == values.
TEST(ShowProperty, ReadsBackToTheSameValues) {
  check_property(500, [] {
    const example::Params params = any_params();
    const std::string text = to_yaml(params, {});
    example::Params read;
    const auto origins = read_yaml(text, "shown", read);
    if (!origins) RC_FAIL(origins.error().text() + "\n" + text);
    RC_ASSERT(read == params);
  });
}

// Law: a text is one line of UTF-8 in YAML, and reads back as itself.
TEST(ShowProperty, TextsReadBack) {
  struct Holder {
    std::string text;
    void visit_params(ParamVisitor& visitor) { visitor.text({"text", "A text."}, text); }
  };
  check_property(5'000, [] {
    const Holder holder{*any_text()};
    const std::string text = to_yaml(holder, {});
    RC_ASSERT(std::ranges::count(text, '\n') == 1);
    Holder read;
    const auto origins = read_yaml(text, "shown", read);
    if (!origins) RC_FAIL(origins.error().text() + "\n" + text);
    RC_ASSERT(read.text == holder.text);
  });
}

}  // namespace
}  // namespace balanceroute
