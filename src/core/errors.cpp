#include "core/errors.hpp"

#include <utility>

namespace balanceroute {
namespace {

constexpr std::string_view kNoSequence = "a request has at least one sequence";
constexpr std::string_view kNegativeTokens = "a token count is negative";
constexpr std::string_view kTooManyTokens = "more than 2147483648 tokens in one request";

}  // namespace

std::string_view to_string(RequestError error) {
  switch (error) {
    case RequestError::NoSequence:
      return kNoSequence;
    case RequestError::NegativeTokens:
      return kNegativeTokens;
    case RequestError::TooManyTokens:
      return kTooManyTokens;
  }
  std::unreachable();
}

std::string_view to_string(AdmitError error) {
  switch (error) {
    case AdmitError::NoSequence:
      return kNoSequence;
    case AdmitError::NegativeTokens:
      return kNegativeTokens;
    case AdmitError::TooManyTokens:
      return kTooManyTokens;
    case AdmitError::UnknownWorker:
      return "no such worker";
    case AdmitError::WorkerNotReady:
      return "the worker takes no admissions";
    case AdmitError::NoFreeSlots:
      return "the worker has too few free slots";
    case AdmitError::NoKvSpace:
      return "the worker has too little free KV space";
    case AdmitError::AlreadyAdmitted:
      return "the request already has a worker";
  }
  std::unreachable();
}

std::string_view to_string(SubmitError error) {
  switch (error) {
    case SubmitError::NoSequence:
      return kNoSequence;
    case SubmitError::NegativeTokens:
      return kNegativeTokens;
    case SubmitError::TooManyTokens:
      return kTooManyTokens;
    case SubmitError::NoWorkerReady:
      return "no worker is ready";
    case SubmitError::TooManySequences:
      return "more sequences than any worker has slots";
    case SubmitError::ExceedsKvSpace:
      return "the prompt needs more KV space than any worker has";
    case SubmitError::ExceedsQuota:
      return "more sequences than the tenant may run at once";
    case SubmitError::UnknownTenant:
      return "no such tenant";
    case SubmitError::AlreadyKnown:
      return "the request already waits or has a worker";
  }
  std::unreachable();
}

std::string_view to_string(WorkerError error) {
  switch (error) {
    case WorkerError::UnknownGroup:
      return "no such group";
    case WorkerError::UnknownWorker:
      return "no such worker";
    case WorkerError::DuplicateWorker:
      return "the fleet already has this worker";
    case WorkerError::NoSlots:
      return "a worker has at least one slot";
    case WorkerError::NoKvSpace:
      return "a worker's KV space is larger than its reserve";
    case WorkerError::WorkerDead:
      return "the worker is dead; only a restart brings it back";
    case WorkerError::StillBusy:
      return "the worker still holds requests";
  }
  std::unreachable();
}

}  // namespace balanceroute
