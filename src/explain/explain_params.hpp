// explain_params.hpp - the settings of `explain`.
#pragma once

#include <string>

#include "core/params.hpp"

namespace balanceroute::explain {

struct ExplainParams {
  std::string snapshot;
  std::string policy;
  std::string json;

  void visit_params(ParamVisitor& visitor) {
    visitor.text(
        {.name = "snapshot",
         .doc = "JSON file with the state of a fleet, as GET /debug/snapshot of the admin listener gives it; - is "
                "standard input.",
         .required = true},
        snapshot);
    visitor.text({"policy", "Another policy than the snapshot's, with its default settings."}, policy);
    visitor.text({"json", "File for the result as JSON; - is standard output."}, json);
  }
};

}  // namespace balanceroute::explain
