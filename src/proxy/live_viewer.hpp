// live_viewer.hpp - one dashboard that looks, and what it has not been sent yet.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "net/event.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::proxy {

// LiveViewer holds what a viewer's connection could not take at once.
//   Bounds   kQueue messages. One more loses them all, and changes after it make no sense until the whole state comes.
//   Threads  those of `home`, but for wants_state, which is the writer's.
class LiveViewer {
 public:
  using Text = std::shared_ptr<const std::string>;
  static constexpr std::size_t kQueue = 8;

  explicit LiveViewer(net::IoThread& thread) : home{thread}, wake{thread} {}

  // A message for it; `whole`: the state, not a change of it.
  void take(bool whole, Text text) {
    if (whole) {
      queue_.clear();
      lost_ = false;
    } else if (lost_ || queue_.size() >= kQueue) {
      lost_ = true;
      queue_.clear();
    }
    if (!lost_) queue_.push_back(std::move(text));
    wake.set();
  }

  // The next message to send; none if there is none.
  [[nodiscard]] Text next() {
    if (queue_.empty()) return nullptr;
    Text text = std::move(queue_.front());
    queue_.pop_front();
    return text;
  }
  [[nodiscard]] bool lost() const { return lost_; }

  net::IoThread& home;
  net::Event wake;  // something has come
  bool wants_state = true;

 private:
  std::deque<Text> queue_;
  bool lost_ = false;
};

}  // namespace balanceroute::proxy
