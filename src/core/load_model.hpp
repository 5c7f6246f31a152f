// load_model.hpp - the one place that says how many tokens a request makes its worker read in a step.
#pragma once

#include <cstdint>

#include "core/request.hpp"
#include "core/units.hpp"

namespace balanceroute {

// LoadModel turns a request and its age into load. The model is `tokens`: each sequence reads its prompt and all that
// it has generated, and grows by one token a step.
class LoadModel {
 public:
  // Load of all sequences of `request` when each has generated `age` tokens.
  [[nodiscard]] constexpr Tokens weight_at(const Request& request, Tokens age) const {
    return (request.prompt + age) * request.sequences;
  }

  // The size D of an admission.
  [[nodiscard]] constexpr Tokens weight_on_entry(const Request& request) const {
    return weight_at(request, request.generated);
  }

  // What `sequences` running sequences add to their worker's load in so many steps.
  [[nodiscard]] constexpr Tokens growth(std::int64_t sequences, Steps steps) const {
    return Tokens{sequences * steps.count()};
  }
};

}  // namespace balanceroute
