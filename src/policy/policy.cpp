#include "policy/policy.hpp"

#include <utility>

namespace balanceroute {

std::string_view to_string(Binding binding) {
  switch (binding) {
    case Binding::immediate:
      return "immediate";
    case Binding::pooled:
      return "pooled";
  }
  std::unreachable();
}

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::bound:
      return "bound";
    case Stage::single:
      return "single";
    case Stage::subset:
      return "subset";
    case Stage::work_conserving:
      return "work_conserving";
    case Stage::overdue:
      return "overdue";
    case Stage::late:
      return "late";
    case Stage::retried:
      return "retried";
  }
  std::unreachable();
}

}  // namespace balanceroute
