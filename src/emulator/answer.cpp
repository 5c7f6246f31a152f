#include "emulator/answer.hpp"

#include <utility>

namespace balanceroute::emulator {

Answer::Answer(net::IoThread& thread, GenerationRequest request, std::vector<AnswerLength> lengths, AnswerFormat format,
               net::HttpExchange* stream)
    : request_{std::move(request)},
      lengths_{std::move(lengths)},
      format_{std::move(format)},
      stream_{stream},
      done_{thread},
      unfinished_{lengths_.size()} {
  choices_.reserve(lengths_.size());  // the group holds their addresses
  for (std::size_t index = 0; index < lengths_.size(); ++index) choices_.emplace_back(*this, index);
}

void Answer::start(SteppingGroup& group, std::size_t rank, RequestId first_id) {
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    const engine::Sequence sequence{
        .id = RequestId{first_id.value() + index},
        .prompt = request_.prompts[index / static_cast<std::size_t>(request_.answers_per_prompt)],
        .output = lengths_[index].output,
        .age = request_.age};
    choices_[index].ticket = group.submit(rank, sequence, choices_[index]);
  }
}

void Answer::Choice::on_token(Tokens number, bool last) {
  if (answer_.stream_ != nullptr) {
    answer_.stream_token(index_, number, last);
  } else {
    append_token_text(text, number);
  }
  if (last && --answer_.unfinished_ == 0) answer_.done_.set();
}

void Answer::stream_token(std::size_t choice, Tokens number, bool last) {
  const Tokens sent = number - request_.age;
  const Usage before{context_of(choice), sent - Tokens{1}};
  const Usage now{context_of(choice), sent};
  events_.clear();
  if (sent == Tokens{1}) format_.append_role(events_, choice, request_.continuous_usage ? &before : nullptr);
  format_.append_token(events_, choice, number, last ? lengths_[choice].finish_reason : "",
                       request_.continuous_usage ? &now : nullptr);
  stream_->write(events_);  // a client that is gone or slow is the exchange's business
}

std::string Answer::tail() const {
  std::string out;
  if (request_.include_usage) format_.append_usage(out, usage());
  AnswerFormat::append_done(out);
  return out;
}

std::string Answer::whole() const {
  std::vector<FinishedChoice> finished;
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    finished.push_back({choices_[index].text, lengths_[index].finish_reason});
  }
  return format_.whole(finished, usage());
}

// What the sequence reads before its first token of this answer.
Tokens Answer::context_of(std::size_t choice) const {
  return request_.prompts[choice / static_cast<std::size_t>(request_.answers_per_prompt)] + request_.age;
}

// Prompts count once, however many answers each has.
Usage Answer::usage() const {
  Usage sum;
  for (const Tokens prompt : request_.prompts) sum.prompt += prompt + request_.age;
  for (const auto& length : lengths_) sum.completion += length.output - request_.age;
  return sum;
}

}  // namespace balanceroute::emulator
