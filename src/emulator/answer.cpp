#include "emulator/answer.hpp"

#include <algorithm>
#include <utility>

namespace balanceroute::emulator {

Answer::Answer(net::IoThread& thread, GenerationRequest request, std::vector<AnswerLength> lengths,
               std::unique_ptr<AnswerWriter> writer, const AnswerDelivery& delivery)
    : request_{std::move(request)},
      lengths_{std::move(lengths)},
      writer_{std::move(writer)},
      delivery_{delivery},
      done_{thread},
      unfinished_{lengths_.size()} {
  choices_.reserve(lengths_.size());  // the group holds their addresses
  for (std::size_t index = 0; index < lengths_.size(); ++index) {
    auto& choice = choices_.emplace_back(*this, index);
    choice.generated = choice.sent = request_.age;
  }
}

void Answer::start(SteppingGroup& group, std::size_t rank, RequestId first_id, bool computed) {
  computed_ = computed;
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    const engine::Sequence sequence{.id = RequestId{first_id.value() + index},
                                    .prompt = request_.prompt_of(index).tokens,
                                    .output = lengths_[index].output,
                                    .age = request_.age};
    const Tokens to_compute = computed ? Tokens{0} : sequence.prompt - request_.cached_of(sequence.prompt);
    choices_[index].ticket = group.submit(rank, sequence, to_compute, choices_[index]);
  }
}

void Answer::take_token(std::size_t index, Tokens number, bool last) {
  auto& choice = choices_[index];
  choice.generated = number;
  if (last) {
    const bool called = !request_.tool.empty() && !request_.tool_named && lengths_[index].finish_reason == "stop";
    choice.finish_reason = called ? "tool_calls" : lengths_[index].finish_reason;
  }
  if (delivery_.stream != nullptr && due(choice)) send_piece(index);
  if (last) end_choice();
}

// The words of vllm-ascend; a router that knows them asks again.
void Answer::take_recomputed(std::size_t index) {
  choices_[index].finish_reason = "stop";
  choices_[index].stop_reason = "recomputed";
  if (delivery_.stream != nullptr) send_piece(index);
  end_choice();
}

void Answer::end_choice() {
  if (--unfinished_ == 0) done_.set();
}

bool Answer::due(const Choice& choice) const {
  const auto waiting = (choice.generated - choice.sent).count();
  return !choice.finish_reason.empty() || choice.sent == request_.age || waiting >= delivery_.stream_interval ||
         choice.generated == request_.reasoning;
}

void Answer::send_piece(std::size_t index) {
  if (died_ || events_sent_ == delivery_.stall_after_events) return;
  auto& choice = choices_[index];
  const Piece piece = piece_after(index, choice.sent);
  const Usage before{context_of(index), choice.sent - request_.age};
  const Usage now{context_of(index), choice.generated - request_.age};
  events_.clear();
  if (piece.opens) {
    writer_->append_opening(events_, index, *piece.prompt, request_.continuous_usage ? &before : nullptr);
  }
  writer_->append_piece(events_, index, piece, request_.continuous_usage ? &now : nullptr);
  choice.sent = choice.generated;
  delivery_.stream->write(events_);  // a client that is gone or slow is the exchange's business
  if (++events_sent_ == delivery_.die_after_events) {
    died_ = true;
    done_.set();
  }
}

// Numbers go on from those that the prompt ends with.
Piece Answer::piece_after(std::size_t index, Tokens sent) const {
  const auto& choice = choices_[index];
  const Prompt& prompt = request_.prompt_of(index);
  return {.first = prompt.answered + sent + Tokens{1},
          .last = prompt.answered + choice.generated,
          .opens = sent == request_.age,
          .opens_call = sent == std::max(request_.age, request_.reasoning),
          .reasoning = choice.generated <= request_.reasoning,
          .finish_reason = choice.finish_reason,
          .stop_reason = choice.stop_reason,
          .prompt = &prompt};
}

std::string Answer::tail() const {
  std::string out;
  writer_->append_end(out, finished(), usage(), request_.include_usage);
  return out;
}

std::string Answer::failure(const ApiError& error) const {
  std::string out;
  writer_->append_failure(out, error);
  return out;
}

std::string Answer::whole() const {
  return writer_->whole(finished(), usage(), {});
}

std::vector<FinishedChoice> Answer::finished() const {
  std::vector<FinishedChoice> finished;
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    const Tokens answered = request_.prompt_of(index).answered;
    finished.push_back(
        {piece_after(index, request_.age), request_.reasoning > Tokens{0} ? answered + request_.reasoning : Tokens{0}});
  }
  return finished;
}

std::vector<std::string_view> Answer::finish_reasons() const {
  std::vector<std::string_view> reasons;
  for (const auto& choice : choices_) reasons.push_back(choice.finish_reason);
  return reasons;
}

// What the sequence reads before its first token of this answer.
Tokens Answer::context_of(std::size_t choice) const {
  return request_.prompt_of(choice).tokens + request_.age;
}

// Prompts count once, however many answers each has.
Usage Answer::usage() const {
  Usage sum;
  for (const Prompt& prompt : request_.prompts) sum.prompt += prompt.tokens + request_.age;
  for (const auto& choice : choices_) sum.completion += choice.generated - request_.age;
  // Of a prompt whose KV came from elsewhere most engines say that they found all but the last token.
  const bool found = computed_ && !delivery_.cached_by_prefill;
  if (request_.cached) {
    sum.cached = Tokens{0};
    for (const Prompt& prompt : request_.prompts) {
      *sum.cached += found ? prompt.tokens - Tokens{1} : request_.cached_of(prompt.tokens);
    }
  }
  return sum;
}

}  // namespace balanceroute::emulator
