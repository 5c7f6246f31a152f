// errors.hpp - what may go wrong in the core, each with words a person can act on.
#pragma once

#include <cstdint>
#include <string_view>

namespace balanceroute {

// A request whose sizes cannot be counted with.
enum class RequestError : std::uint8_t { NoSequence, NegativeTokens, TooManyTokens };

// A request that a worker cannot take now.
enum class AdmitError : std::uint8_t {
  NoSequence,
  NegativeTokens,
  TooManyTokens,
  UnknownWorker,
  WorkerNotReady,
  NoFreeSlots,
  NoKvSpace,
  AlreadyAdmitted
};

// A request that cannot wait for a worker.
enum class SubmitError : std::uint8_t {
  NoSequence,
  NegativeTokens,
  TooManyTokens,
  NoWorkerReady,
  TooManySequences,
  ExceedsKvSpace,
  ExceedsQuota,
  UnknownTenant,
  AlreadyKnown
};

// A change of membership that does not apply.
enum class WorkerError : std::uint8_t {
  UnknownGroup,
  UnknownWorker,
  DuplicateWorker,
  NoSlots,
  NoKvSpace,
  WorkerDead,
  StillBusy
};

[[nodiscard]] std::string_view to_string(RequestError error);
[[nodiscard]] std::string_view to_string(AdmitError error);
[[nodiscard]] std::string_view to_string(SubmitError error);
[[nodiscard]] std::string_view to_string(WorkerError error);

}  // namespace balanceroute
