#include "net/timer_queue.hpp"

#include <utility>

namespace balanceroute::net {

TimerQueue::~TimerQueue() {
  for (Timer* timer : heap_) timer->index_ = Timer::kIdle;
}

TimePoint TimerQueue::next_deadline() const {
  return heap_.empty() ? kNever : heap_.front()->deadline_;
}

void TimerQueue::fire_due(TimePoint now) {
  while (!heap_.empty() && heap_.front()->deadline_ <= now) {
    Timer& timer = *heap_.front();
    erase(timer);
    auto callback = std::move(timer.callback_);  // the callback may destroy the timer
    callback();
  }
}

void TimerQueue::insert(Timer& timer) {
  timer.serial_ = armed_count_++;
  heap_.push_back(&timer);
  timer.index_ = heap_.size() - 1;
  sift_up(timer.index_);
  if (timer.index_ == 0 && wake_) wake_();
}

void TimerQueue::erase(Timer& timer) {
  const std::size_t hole = timer.index_;
  Timer* last = heap_.back();
  heap_.pop_back();
  timer.index_ = Timer::kIdle;
  if (last == &timer) return;
  place(hole, last);
  sift_up(hole);
  sift_down(last->index_);
}

void TimerQueue::sift_up(std::size_t i) {
  while (i > 0) {
    const std::size_t parent = (i - 1) / 2;
    if (!heap_[i]->before(*heap_[parent])) return;
    Timer* child = heap_[i];
    place(i, heap_[parent]);
    place(parent, child);
    i = parent;
  }
}

void TimerQueue::sift_down(std::size_t i) {
  for (;;) {
    std::size_t first = i;
    for (std::size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
      if (heap_[child]->before(*heap_[first])) first = child;
    }
    if (first == i) return;
    Timer* parent = heap_[i];
    place(i, heap_[first]);
    place(first, parent);
    i = first;
  }
}

void TimerQueue::place(std::size_t i, Timer* timer) {
  heap_[i] = timer;
  timer->index_ = i;
}

void Timer::arm(TimePoint deadline, std::move_only_function<void()> callback) {
  cancel();
  if (deadline == kNever) return;
  deadline_ = deadline;
  callback_ = std::move(callback);
  queue_->insert(*this);
}

void Timer::cancel() {
  if (armed()) queue_->erase(*this);
}

}  // namespace balanceroute::net
