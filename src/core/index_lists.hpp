// index_lists.hpp - doubly linked lists of small numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace balanceroute {

// IndexLists is some lists over one range of indices; each index is in at most one of them.
//   Cost     every call O(1); allocates only when grow_to() sees a new largest index.
//   Threads  not synchronised.
class IndexLists {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  explicit IndexLists(std::size_t lists = 0) : ends_(lists) {}

  [[nodiscard]] std::size_t lists() const { return ends_.size(); }
  // Makes lists below `count` usable.
  void grow_lists_to(std::size_t count) {
    if (count > ends_.size()) ends_.resize(count);
  }

  // Makes indices below `count` usable.
  void grow_to(std::size_t count) {
    if (count > links_.size()) links_.resize(count);
  }

  void push_back(std::size_t list, Index index) {
    Ends& ends = ends_[list];
    links_[index] = {ends.last, kNone};
    (ends.last == kNone ? ends.first : links_[ends.last].next) = index;
    ends.last = index;
  }

  void push_front(std::size_t list, Index index) {
    Ends& ends = ends_[list];
    links_[index] = {kNone, ends.first};
    (ends.first == kNone ? ends.last : links_[ends.first].previous) = index;
    ends.first = index;
  }

  // `index` is in `list`.
  void erase(std::size_t list, Index index) {
    const auto [previous, next] = links_[index];
    (previous == kNone ? ends_[list].first : links_[previous].next) = next;
    (next == kNone ? ends_[list].last : links_[next].previous) = previous;
  }

  [[nodiscard]] Index front(std::size_t list) const { return ends_[list].first; }
  [[nodiscard]] Index back(std::size_t list) const { return ends_[list].last; }
  [[nodiscard]] Index next(Index index) const { return links_[index].next; }

 private:
  struct Links {
    Index previous = kNone;
    Index next = kNone;
  };
  struct Ends {
    Index first = kNone;
    Index last = kNone;
  };

  std::vector<Ends> ends_;
  std::vector<Links> links_;
};

}  // namespace balanceroute
