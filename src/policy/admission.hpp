// admission.hpp - what a round decides: one request, one worker.
#pragma once

#include <cstdint>
#include <optional>

#include "core/ids.hpp"
#include "core/ledger.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "policy/policy.hpp"

namespace balanceroute {

// Admission is one request on its worker, and why it is there. Take the lease out of it: what is left in it when the
// next round begins is given back.
struct Admission {
  Request request;
  WorkerId worker;
  std::uint32_t incarnation;  // of the worker, when the slots were taken
  Lease lease;

  Stage stage;
  std::int32_t set_size;  // requests chosen together
  double score;           // of that set, as the policy's score_meaning() says
  Tokens margin;          // the worker's room below the envelope just before
  struct Alternative {
    WorkerId worker;
    double score;
  };
  std::optional<Alternative> runner_up{};
};

}  // namespace balanceroute
