// request.hpp - what the routing core knows of a request: its sizes, never its content.
#pragma once

#include <cstdint>
#include <expected>

#include "core/errors.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace balanceroute {

// The largest token count taken, for one sequence and for a whole request; sums of them then fit every type in use.
inline constexpr Tokens kMaxTokens{std::int64_t{1} << 31};

// Request is `sequences` answers to one prompt, admitted together on one worker.
//   prompt        tokens of the prompt, of one sequence
//   generated     tokens one sequence has already generated on entry (its age; 0 but for a request that resumes)
//   output_limit  most tokens that one sequence may generate, age included
//   prompt_key    equal for equal prompts (a keyed hash); 0: not known
//   tenant        who shares the fleet with others
//   priority      its class: a higher one goes first
struct Request {
  RequestId id;
  Tokens prompt;
  Tokens generated{0};
  std::int32_t sequences = 1;
  Tokens output_limit = kMaxTokens;
  std::uint64_t prompt_key = 0;
  TenantId tenant = kDefaultTenant;
  std::int32_t priority = 0;
};

// Whether the sizes are ones the core can count with.
[[nodiscard]] constexpr std::expected<void, RequestError> check(const Request& request) {
  if (request.sequences < 1) return std::unexpected(RequestError::NoSequence);
  if (request.prompt < Tokens{0} || request.generated < Tokens{0}) return std::unexpected(RequestError::NegativeTokens);
  if (request.prompt > kMaxTokens || request.generated > kMaxTokens ||
      (request.prompt + request.generated) * request.sequences > kMaxTokens) {
    return std::unexpected(RequestError::TooManyTokens);
  }
  return {};
}

}  // namespace balanceroute
