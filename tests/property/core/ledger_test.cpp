#include "core/ledger.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

constexpr std::int32_t kSlots = 4;

// What a sequence of that size reads under the model of that number, and what the ledger calls the model.
std::int64_t obvious_weight(std::uint64_t model, std::int64_t size) {
  switch (model) {
    case 1:
      return (size + 47) / 48 * 48;
    case 2:
      return std::min<std::int64_t>(size, 1000);
    case 3:
      return size <= 1000 ? size : 1000 + (size - 1000) / 4;
    case 4:
      return 3 * size + 70;
    default:
      return size;
  }
}
LoadModel model_of(std::uint64_t number) {
  const LoadModel models[] = {LoadModel{}, LoadModel::paged(Tokens{48}), LoadModel::windowed(Tokens{1000}),
                              LoadModel::windowed(Tokens{1000}, 4), LoadModel::affine(3, Tokens{70})};
  return models[number];
}

struct Setting {
  std::uint64_t model;
  std::int64_t kv_block;
};

// The slow, obvious ledger: a list of what is held, with everything else added up from it.
struct Held {
  std::uint64_t request;
  std::uint32_t worker;
  std::int64_t prompt;
  std::int64_t age;
  std::int32_t sequences;
  bool running = false;
  [[nodiscard]] std::int64_t weight(const Setting& setting) const {
    return sequences * obvious_weight(setting.model, prompt + age);
  }
  [[nodiscard]] std::int64_t kv(const Setting& setting) const {
    return sequences * ((prompt + age + setting.kv_block - 1) / setting.kv_block * setting.kv_block);
  }
};

struct Model {
  struct Worker {
    std::uint32_t group;
    KvSpace kv;
    WorkerState state = WorkerState::ready;
  };
  Setting setting;
  std::vector<Worker> workers;
  std::vector<Held> held;

  [[nodiscard]] std::int32_t used(std::uint32_t worker) const {
    std::int32_t sum = 0;
    for (const Held& one : held) sum += one.worker == worker ? one.sequences : 0;
    return sum;
  }
  [[nodiscard]] std::int64_t load(std::uint32_t worker) const {
    std::int64_t sum = 0;
    for (const Held& one : held) sum += one.worker == worker ? one.weight(setting) : 0;
    return sum;
  }
  [[nodiscard]] std::int64_t kv_free(std::uint32_t worker) const {
    const KvSpace& space = workers[worker].kv;
    if (space.capacity == kUnlimitedKv) return kUnlimitedKv.count();
    std::int64_t left = (space.capacity - space.reserve).count();
    for (const Held& one : held) left -= one.worker == worker ? one.kv(setting) : 0;
    return left;
  }
  [[nodiscard]] bool eligible(std::uint32_t worker) const {
    const bool suspect = std::ranges::any_of(workers, [&](const Worker& other) {
      return other.group == workers[worker].group && other.state == WorkerState::dead;
    });
    return workers[worker].state == WorkerState::ready && !suspect;
  }
  [[nodiscard]] Held* find(std::uint64_t request) {
    const auto found = std::ranges::find(held, request, &Held::request);
    return found == held.end() ? nullptr : &*found;
  }
  void void_leases(std::uint32_t worker) {
    std::erase_if(held, [&](const Held& one) { return one.worker == worker; });
  }
};

// A ledger and its model, driven by the same operations.
class Pair {
 public:
  explicit Pair(const Setting& setting)
      : ledger{"fleet", {.load_model = model_of(setting.model), .kv_block = Tokens{setting.kv_block}}},
        model{.setting = setting, .workers = {}, .held = {}} {
    for (std::uint32_t group = 0; group < 2; ++group) {
      ledger.add_group("group" + std::to_string(group));
      for (int i = 0; i < 3; ++i) add_worker(group);
    }
  }

  void step(std::uint64_t word) {
    Random draw{word};  // the arguments
    const WorkerId worker{static_cast<std::uint32_t>(draw.below(model.workers.size()))};
    switch (word % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
        reserve(worker, draw);
        break;
      case 4:
        on_lease(draw, [](Lease& lease, Held* held) {
          lease.started();
          if (held != nullptr) held->running = true;
        });
        break;
      case 5:
      case 6:
        on_lease(draw, [&draw](Lease& lease, Held* held) {
          const auto generated = static_cast<std::int64_t>(draw.below(1000));
          lease.progress(Tokens{generated});
          if (held != nullptr) held->running = true, held->age = generated;
        });
        break;
      case 7:
      case 8:
        advance(static_cast<std::uint32_t>(draw.below(2)), static_cast<std::int64_t>(draw.below(20)));
        break;
      case 9:
        on_lease(draw, [this](Lease& lease, Held* held) {
          lease.finish_one(Tokens{0});
          if (held != nullptr && --held->sequences == 0) {
            std::erase_if(model.held, [&](const Held& one) { return &one == held; });
          }
        });
        break;
      case 10:
        on_lease(draw, [this](Lease& lease, Held* held) {
          lease.release();
          if (held != nullptr) std::erase_if(model.held, [&](const Held& one) { return &one == held; });
        });
        break;
      case 11:
        change(ledger.drain(worker), worker, WorkerState::draining);
        break;
      case 12:
        change(ledger.resume(worker), worker, WorkerState::ready);
        break;
      case 13:
        restart(worker);
        break;
      case 14:
        declare_dead(worker);
        break;
      default:
        draw.below(4) == 0 ? remove(worker) : add_worker(static_cast<std::uint32_t>(draw.below(2)));
    }
  }

  void compare() {
    for (std::uint32_t i = 0; i < model.workers.size(); ++i) {
      const WorkerRecord record = ledger.worker(WorkerId{i});
      require(record.state == model.workers[i].state);
      require(record.load == Tokens{model.load(i)});
      require(record.sequences == model.used(i));
      require(record.eligible == model.eligible(i));
    }
    for (const GroupView& view : ledger.groups()) compare(view);
    require(ledger.live_leases() == model.held.size());
    for (const LeaseRecord& lease : ledger.leases()) {
      const Held* held = model.find(lease.request.id.value());
      require(held != nullptr);
      require(lease.worker == WorkerId{held->worker});
      require(lease.weight == Tokens{held->weight(model.setting)});
      require(lease.kv == Tokens{held->kv(model.setting)});
      require(lease.generated == Tokens{held->age});
      require((lease.state == LeaseState::running) == held->running);
    }
  }

  void release_all() {
    leases.clear();
    model.held.clear();
  }

 private:
  struct Owned {
    std::uint64_t request;
    Lease lease;
  };

  void compare(const GroupView& view) {
    require(std::ranges::is_sorted(view.workers));
    for (std::size_t i = 0; i < view.size(); ++i) {
      const std::uint32_t id = view.workers[i].value();
      const WorkerState state = model.workers[id].state;
      require(state == WorkerState::ready || state == WorkerState::draining);
      require(ledger.position(view.workers[i]) == i);
      require(view.loads[i] == Tokens{model.load(id)} && view.loads[i] >= Tokens{0});
      require(view.free_slots[i] == kSlots - model.used(id) && view.free_slots[i] >= 0);
      require((view.eligible[i] != 0) == model.eligible(id));
      require(view.kv_free[i] == Tokens{model.kv_free(id)});
      require(view.kv_space[i] >= view.kv_free[i]);
    }
  }

  void reserve(WorkerId worker, Random& draw) {
    const Held held{.request = draw.below(12),
                    .worker = worker.value(),
                    .prompt = static_cast<std::int64_t>(draw.below(5000)),
                    .age = static_cast<std::int64_t>(draw.below(3) * draw.below(100)),
                    .sequences = static_cast<std::int32_t>(1 + draw.below(3))};
    auto lease = ledger.reserve(worker, {.id = RequestId{held.request},
                                         .prompt = Tokens{held.prompt},
                                         .generated = Tokens{held.age},
                                         .sequences = held.sequences});
    const bool possible = model.eligible(worker.value()) && model.find(held.request) == nullptr &&
                          model.used(worker.value()) + held.sequences <= kSlots &&
                          held.kv(model.setting) <= model.kv_free(worker.value());
    require(lease.has_value() == possible);
    if (!lease) return;
    model.held.push_back(held);
    leases.push_back({held.request, *std::move(lease)});
  }

  // Calls `use` with a lease and what the model knows of it: nothing if it was voided or released.
  template <class Use>
  void on_lease(Random& draw, Use use) {
    if (leases.empty()) return;
    Owned& owned = leases[draw.below(leases.size())];
    use(owned.lease, owned.lease.live() ? model.find(owned.request) : nullptr);
  }

  void advance(std::uint32_t group, std::int64_t steps) {
    ledger.advance(GroupId{group}, Steps{steps});
    for (Held& held : model.held) {
      if (held.running && model.workers[held.worker].group == group) held.age += steps;
    }
  }

  void change(std::expected<void, WorkerError> done, WorkerId worker, WorkerState state) {
    Model::Worker& known = model.workers[worker.value()];
    const bool at_barrier = known.state == WorkerState::ready || known.state == WorkerState::draining;
    require(done.has_value() == at_barrier);
    if (at_barrier) known.state = state;
  }

  void restart(WorkerId worker) {
    Model::Worker& known = model.workers[worker.value()];
    const std::uint32_t before = ledger.incarnation(worker);
    require(ledger.restart(worker).has_value() == (known.state != WorkerState::removed));
    if (known.state == WorkerState::removed) return;
    require(ledger.incarnation(worker) == before + 1);
    model.void_leases(worker.value());
    if (known.state == WorkerState::dead) known.state = WorkerState::ready;
  }

  void declare_dead(WorkerId worker) {
    Model::Worker& known = model.workers[worker.value()];
    require(ledger.declare_dead(worker).has_value() == (known.state != WorkerState::removed));
    if (known.state == WorkerState::removed) return;
    model.void_leases(worker.value());
    known.state = WorkerState::dead;
  }

  void remove(WorkerId worker) {
    Model::Worker& known = model.workers[worker.value()];
    const bool possible = known.state != WorkerState::removed && model.used(worker.value()) == 0;
    require(ledger.remove(worker).has_value() == possible);
    if (possible) known.state = WorkerState::removed;
  }

  void add_worker(std::uint32_t group) {
    const auto rank = static_cast<std::int32_t>(model.workers.size());
    const KvSpace kv = rank % 3 == 0 ? KvSpace{} : KvSpace{Tokens{4000 * rank}, Tokens{500}};
    const auto added = ledger.add_worker(GroupId{group}, "http://host", rank, kSlots, kv);
    require(added.value() == WorkerId{static_cast<std::uint32_t>(model.workers.size())});
    model.workers.push_back({.group = group, .kv = kv});
  }

  Ledger ledger;
  Model model;
  std::vector<Owned> leases;
};

// Law: whatever is reserved, grown, corrected, given back or voided, in any order and under any load model, the ledger
// holds what a list of requests adds up to; in the end nothing. Nobody is admitted beyond a worker's KV space.
TEST(LedgerProperty, EqualsTheSumOfItsLeases) {
  check_property(10'000, [](std::uint32_t chance, const std::vector<std::uint32_t>& words) {
    Random draw{chance};
    Pair pair{{.model = draw.below(5), .kv_block = draw.below(2) == 0 ? 1 : 16}};
    for (const std::uint32_t word : words) {
      pair.step(word);
      pair.compare();
    }
    pair.release_all();
    pair.compare();
  });
}

}  // namespace
}  // namespace balanceroute
