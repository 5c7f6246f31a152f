// group_sketch.hpp - a group and a pool written down by hand, for tests of policies without a ledger.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/group_view.hpp"
#include "core/pool.hpp"

namespace balanceroute {

struct GroupSketch {
  struct Worker {
    std::int64_t load = 0;
    std::int32_t free_slots = 1;
    bool eligible = true;
    std::int32_t sequences = 0;
    Tokens kv_free = kUnlimitedKv;
  };

  GroupSketch() = default;
  GroupSketch(std::initializer_list<Worker> all) {
    for (const Worker& worker : all) add(worker);
  }

  void add(const Worker& worker) {
    workers.emplace_back(static_cast<std::uint32_t>(workers.size()));
    loads.emplace_back(worker.load);
    slots.push_back(worker.sequences + worker.free_slots);
    free_slots.push_back(worker.free_slots);
    sequences.push_back(worker.sequences);
    kv_free.push_back(worker.kv_free);
    kv_space.push_back(kUnlimitedKv);
    eligible.push_back(worker.eligible ? 1 : 0);
  }

  [[nodiscard]] GroupView view() const {
    return {.group = GroupId{0},
            .workers = workers,
            .loads = loads,
            .slots = slots,
            .free_slots = free_slots,
            .sequences = sequences,
            .kv_free = kv_free,
            .kv_space = kv_space,
            .eligible = eligible};
  }

  std::vector<WorkerId> workers;
  std::vector<Tokens> loads;
  std::vector<std::int32_t> slots;
  std::vector<std::int32_t> free_slots;
  std::vector<std::int32_t> sequences;
  std::vector<Tokens> kv_free;
  std::vector<Tokens> kv_space;
  std::vector<std::uint8_t> eligible;
};

// Candidates of these sizes, oldest first.
struct Sketched {
  std::int64_t prompt;
  std::int32_t sequences = 1;
  std::int32_t passes = 0;
};

inline std::vector<Candidate> sketch_pool(const std::vector<Sketched>& all) {
  std::vector<Candidate> pool;
  for (const Sketched& one : all) {
    const std::uint64_t serial = pool.size();
    pool.push_back({.request = {.id = RequestId{serial}, .prompt = Tokens{one.prompt}, .sequences = one.sequences},
                    .weight = Tokens{one.prompt * one.sequences},
                    .serial = serial,
                    .passes = one.passes});
  }
  return pool;
}

}  // namespace balanceroute
