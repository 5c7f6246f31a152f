// answer.hpp - the tokens of one request on their way from the group to the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/answer_length.hpp"
#include "emulator/answer_writer.hpp"
#include "emulator/generation_request.hpp"
#include "emulator/stepping_group.hpp"
#include "net/event.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {

// How an answer goes out.
struct AnswerDelivery {
  net::HttpExchange* stream = nullptr;                  // nullptr: in one piece at its end
  std::int64_t stream_interval = 1;                     // tokens of an event after the first
  bool cached_by_prefill = false;                       // usage tells what the prefill engine had cached
  std::optional<std::int64_t> die_after_events = {};    // done() comes then, with died()
  std::optional<std::int64_t> stall_after_events = {};  // nothing is written any more
};

// Answer is all sequences of one request, running on one rank.
//   Use       start(), wait for done(), then tail() for a stream or whole() else.
//   Streams   The first token of a choice is written at once, then an event for each `stream_interval` tokens and for
//             the end.
//   Lifetime  Destroying it withdraws what is still running.
//   Threads   only on the thread of its group.
class Answer {
 public:
  Answer(net::IoThread& thread, GenerationRequest request, std::vector<AnswerLength> lengths,
         std::unique_ptr<AnswerWriter> writer, const AnswerDelivery& delivery);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // With `computed` the rank has the prompts' KV already.
  void start(SteppingGroup& group, std::size_t rank, RequestId first_id, bool computed);
  [[nodiscard]] net::Event& done() { return done_; }
  [[nodiscard]] bool died() const { return died_; }

  // What ends the stream, with the usage if it was asked for.
  [[nodiscard]] std::string tail() const;
  // What ends a stream that breaks off.
  [[nodiscard]] std::string failure(const ApiError& error) const;
  [[nodiscard]] std::string whole() const;
  // Why each sequence ended.
  [[nodiscard]] std::vector<std::string_view> finish_reasons() const;

 private:
  // One sequence of the request.
  class Choice final : public TokenSink {
   public:
    Choice(Answer& answer, std::size_t index) : answer_{answer}, index_{index} {}
    void on_token(Tokens number, bool last) override { answer_.take_token(index_, number, last); }
    void on_recomputed() override { answer_.take_recomputed(index_); }

    Tokens generated{0};  // age included
    Tokens sent{0};       // in events, age included
    std::string_view finish_reason;
    std::string_view stop_reason;
    SteppingGroup::Ticket ticket;

   private:
    Answer& answer_;
    std::size_t index_;
  };

  void take_token(std::size_t index, Tokens number, bool last);
  void take_recomputed(std::size_t index);
  void end_choice();
  [[nodiscard]] bool due(const Choice& choice) const;
  void send_piece(std::size_t index);
  [[nodiscard]] Piece piece_after(std::size_t index, Tokens sent) const;
  [[nodiscard]] std::vector<FinishedChoice> finished() const;
  [[nodiscard]] Tokens context_of(std::size_t choice) const;
  [[nodiscard]] Usage usage() const;

  GenerationRequest request_;
  std::vector<AnswerLength> lengths_;  // by choice
  std::unique_ptr<AnswerWriter> writer_;
  AnswerDelivery delivery_;
  net::Event done_;
  std::vector<Choice> choices_;
  std::size_t unfinished_ = 0;
  bool computed_ = false;  // elsewhere
  std::int64_t events_sent_ = 0;
  bool died_ = false;
  std::string events_;  // of one piece, kept for its memory
};

}  // namespace balanceroute::emulator
