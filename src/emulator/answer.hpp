// answer.hpp - the tokens of one request on their way from the group to the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/answer_format.hpp"
#include "emulator/answer_length.hpp"
#include "emulator/generation_request.hpp"
#include "emulator/stepping_group.hpp"
#include "net/event.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {

// Answer is all sequences of one request, running on one rank.
//   Use       start(), wait for done(), then tail() for a stream or whole() else.
//   Streams   With `stream` each token is written there at once, an event a token.
//   Lifetime  Destroying it withdraws what is still running.
//   Threads   only on the thread of its group.
class Answer {
 public:
  Answer(net::IoThread& thread, GenerationRequest request, std::vector<AnswerLength> lengths, AnswerFormat format,
         net::HttpExchange* stream);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  void start(SteppingGroup& group, std::size_t rank, RequestId first_id);
  [[nodiscard]] net::Event& done() { return done_; }

  // What ends the stream: usage if it was asked for, and the end mark.
  [[nodiscard]] std::string tail() const;
  [[nodiscard]] std::string whole() const;
  // Why each sequence ended.
  [[nodiscard]] const std::vector<AnswerLength>& lengths() const { return lengths_; }

 private:
  // One sequence of the request.
  class Choice final : public TokenSink {
   public:
    Choice(Answer& answer, std::size_t index) : answer_{answer}, index_{index} {}
    void on_token(Tokens number, bool last) override;

    std::string text;  // when not streamed
    SteppingGroup::Ticket ticket;

   private:
    Answer& answer_;
    std::size_t index_;
  };

  void stream_token(std::size_t choice, Tokens number, bool last);
  [[nodiscard]] Tokens context_of(std::size_t choice) const;
  [[nodiscard]] Usage usage() const;

  GenerationRequest request_;
  std::vector<AnswerLength> lengths_;  // by choice
  AnswerFormat format_;
  net::HttpExchange* stream_;
  net::Event done_;
  std::vector<Choice> choices_;
  std::size_t unfinished_ = 0;
  std::string events_;  // of one token, kept for its memory
};

}  // namespace balanceroute::emulator
