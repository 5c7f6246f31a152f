// property.hpp - a rapidcheck property as part of a gtest test, with a fixed seed and a stated number of cases.
//
// RC_PARAMS in the environment overrides both, e.g. RC_PARAMS="seed=7 max_success=100000" to look further.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <source_location>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

namespace balanceroute {

template <class Property>
void check_property(int cases, Property&& property) {
  rc::detail::TestParams params;
  params.seed = 20260508;
  params.maxSuccess = cases;
  if (std::getenv("RC_PARAMS") != nullptr) params = rc::detail::configuration().testParams;
  rc::detail::TestListenerAdapter silent;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), rc::detail::TestMetadata{}, params,
                                                silent, std::unordered_map<std::string, rc::detail::Reproduce>{});
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  ADD_FAILURE() << message.str();
}

// RC_ASSERT for inner loops: it makes no text unless it fails.
inline void require(bool holds, std::source_location where = std::source_location::current()) {
  if (!holds) RC_FAIL(std::string{where.file_name()} + ":" + std::to_string(where.line()) + ": law broken");
}

}  // namespace balanceroute
