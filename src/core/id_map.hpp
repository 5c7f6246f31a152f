// id_map.hpp - from request ids to small numbers, without an allocation an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/random.hpp"

namespace balanceroute {

// IdMap is a hash table from RequestId to a 32-bit value: open addressing, linear probing, deletion by shifting back.
//   Cost        each call amortised O(1); allocates only when it grows, never shrinks.
//   Threads     not synchronised.
class IdMap {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] std::optional<std::uint32_t> find(RequestId id) const {
    if (size_ == 0) return std::nullopt;
    const Cell& cell = cells_[locate(id)];
    if (!cell.used) return std::nullopt;
    return cell.value;
  }

  // False, and no change, if the id is there already.
  bool insert(RequestId id, std::uint32_t value) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    Cell& cell = cells_[locate(id)];
    if (cell.used) return false;
    cell = {id, value, true};
    ++size_;
    return true;
  }

  // The value of an id that is there, or is now.
  void assign(RequestId id, std::uint32_t value) {
    if (!insert(id, value)) cells_[locate(id)].value = value;
  }

  bool erase(RequestId id) {
    if (size_ == 0) return false;
    std::size_t hole = locate(id);
    if (!cells_[hole].used) return false;
    for (std::size_t next = after(hole); cells_[next].used; next = after(next)) {
      const std::size_t wished = home(cells_[next].id);
      if (distance(wished, next) < distance(hole, next)) continue;  // it would move in front of its home
      cells_[hole] = cells_[next];
      hole = next;
    }
    cells_[hole] = {};
    --size_;
    return true;
  }

 private:
  struct Cell {
    RequestId id;
    std::uint32_t value = 0;
    bool used = false;
  };

  [[nodiscard]] std::size_t mask() const { return cells_.size() - 1; }
  [[nodiscard]] std::size_t home(RequestId id) const { return mix_bits(id.value()) & mask(); }
  [[nodiscard]] std::size_t after(std::size_t index) const { return (index + 1) & mask(); }
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & mask(); }

  // The cell of `id`, or the free one where it would go.
  [[nodiscard]] std::size_t locate(RequestId id) const {
    std::size_t index = home(id);
    while (cells_[index].used && cells_[index].id != id) index = after(index);
    return index;
  }

  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : 2 * cells_.size());
    old.swap(cells_);
    for (const Cell& cell : old) {
      if (cell.used) cells_[locate(cell.id)] = cell;
    }
  }

  std::vector<Cell> cells_;  // a power of two of them, at most half used
  std::size_t size_ = 0;
};

}  // namespace balanceroute
