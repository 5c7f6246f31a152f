// require.hpp - a promise that a fuzz target checks.
#pragma once

#include <cstdlib>

inline void require(bool holds) {
  if (!holds) std::abort();
}
