// fleet_state_params.cpp - the members of a fleet's state, declared as settings are.
#include "explain/fleet_state.hpp"

namespace balanceroute::explain {

namespace {

constexpr std::int64_t kMostSlots = 65'536;
constexpr ParamRange<std::int64_t> kSomeTokens{0, kMaxTokens.count()};
constexpr ParamRange<std::int64_t> kNumbers{0, std::int64_t{1} << 62};

}  // namespace

void RunningState::visit_params(ParamVisitor& visitor) {
  visitor.integer_or_auto({"request", "Its number, for people; auto: it has none."}, request, kUnnamed, kNumbers);
  visitor.integer({"prompt", "Tokens of the prompt.", true}, prompt, kSomeTokens);
  visitor.integer({"generated", "Tokens that each sequence has generated."}, generated, kSomeTokens);
  visitor.integer({"sequences", "Answers that are decoded side by side."}, sequences, {1, kMostSlots});
  visitor.integer({"output_limit", "Most tokens that a sequence may generate."}, output_limit, kSomeTokens);
  visitor.flag({"started", "Whether it has shown a token, and grows with its group's steps."}, started);
}

void WorkerSnapshot::visit_params(ParamVisitor& visitor) {
  visitor.text({"url", "Its address.", true}, url);
  visitor.integer({"rank", "Its rank behind that address."}, rank, {-1, kMostSlots});
  visitor.integer({"slots", "Sequences that it decodes at once.", true}, slots, {0, kMostSlots});
  visitor.integer({"slots_ahead", "Requests that may wait inside it besides."}, slots_ahead, {0, kMostSlots});
  visitor.integer_or_auto({"kv_space", "Tokens of KV that admissions may take of it when it is idle; auto: no limit."},
                          kv_space, kUnlimited, {0, std::int64_t{1} << 40});
  visitor.flag({"takes_requests", "Whether it is given requests."}, takes_requests);
  visitor.nested_list({"running", "What it holds."}, running);
}

void GroupSnapshot::visit_params(ParamVisitor& visitor) {
  visitor.text({"name", "Its name."}, name);
  visitor.nested_list({"workers", "Its workers.", true}, workers);
}

void WaitingState::visit_params(ParamVisitor& visitor) {
  visitor.integer_or_auto({"request", "Its number, for people; auto: it has none."}, request, RunningState::kUnnamed,
                          kNumbers);
  visitor.integer({"prompt", "Tokens of the prompt.", true}, prompt, kSomeTokens);
  visitor.integer({"sequences", "Answers that are decoded side by side."}, sequences, {1, kMostSlots});
  visitor.integer({"output_limit", "Most tokens that a sequence may generate."}, output_limit, kSomeTokens);
  visitor.integer({"priority", "Its class: a higher one goes first."}, priority, {-1'000'000, 1'000'000});
  visitor.real({"waited_ms", "How long it has waited."}, waited_ms, {0, 1e12});
}

void FleetState::visit_params(ParamVisitor& visitor) {
  visitor.text({"fleet", "Name of the fleet."}, fleet);
  visitor.nested({"policy", "The policy and its settings."}, policy);
  visitor.nested({"load_model", "What a sequence's load is."}, load_model);
  visitor.integer({"kv_block", "Tokens of a KV block."}, kv_block, {1, kMostSlots});
  visitor.flag({"barrier", "Whether the workers of a group wait for each other in every step."}, barrier);
  visitor.nested_list({"groups", "Its groups.", true}, groups);
  visitor.nested_list({"waiting", "Requests that wait, in the order of their turns."}, waiting);
}

}  // namespace balanceroute::explain
