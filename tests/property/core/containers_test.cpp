#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/id_map.hpp"
#include "core/pool.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

// Law: a table of ids answers as a std::map does, whatever the order of insertions and removals.
TEST(IdMapProperty, AnswersAsAMapDoes) {
  check_property(10'000, [](const std::vector<std::uint32_t>& words) {
    IdMap table;
    std::map<RequestId, std::uint32_t> model;
    for (const std::uint32_t word : words) {
      const RequestId id{word / 4 % 64};  // few ids, so that they collide and return
      switch (word % 4) {
        case 0:
          require(table.insert(id, word) == model.try_emplace(id, word).second);
          break;
        case 1:
          table.assign(id, word), model[id] = word;
          break;
        default:
          require(table.erase(id) == (model.erase(id) > 0));
      }
      require(table.size() == model.size());
      const auto expected = model.find(id);
      require(table.find(id) == (expected == model.end() ? std::nullopt : std::optional{expected->second}));
    }
    for (std::uint64_t id = 0; id < 64; ++id) {
      const auto expected = model.find(RequestId{id});
      require(table.find(RequestId{id}) == (expected == model.end() ? std::nullopt : std::optional{expected->second}));
    }
  });
}

struct Waiting {
  std::uint64_t serial;
  std::int32_t passes;
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

std::vector<Waiting> contents(const Pool& pool) {
  std::vector<Waiting> all;
  for (const Candidate& candidate : pool.candidates()) all.push_back({candidate.serial, candidate.passes});
  return all;
}

// Removes positions one by one from a plain vector; each removal is a pass for those in front.
void take_slowly(std::vector<Waiting>& model, const std::set<std::size_t>& positions) {
  for (auto position = positions.rbegin(); position != positions.rend(); ++position) {
    for (std::size_t older = 0; older < *position; ++older) ++model[older].passes;
    model.erase(model.begin() + static_cast<std::ptrdiff_t>(*position));
  }
}

// Law: a pool is a list in order of arrival; passes count later admissions and never rise along it.
TEST(PoolProperty, IsAListInOrderOfArrival) {
  check_property(10'000, [](const std::vector<std::uint32_t>& words) {
    Pool pool;
    std::vector<Waiting> model;
    std::uint64_t next = 0;
    for (const std::uint32_t word : words) {
      const std::uint32_t argument = word / 4;
      if (word % 4 < 2 || model.empty()) {
        pool.push({.request = {.id = RequestId{next}, .prompt = Tokens{1}}, .weight = Tokens{1}, .serial = next});
        model.push_back({next++, 0});
      } else if (word % 4 == 2) {
        const std::size_t position = argument % model.size();
        pool.erase(position);
        model.erase(model.begin() + static_cast<std::ptrdiff_t>(position));
      } else {
        std::set<std::size_t> positions;
        for (std::uint32_t rest = argument; rest > 0; rest /= 7) positions.insert(rest % model.size());
        pool.take(std::vector<std::size_t>(positions.begin(), positions.end()));
        take_slowly(model, positions);
      }
      require(contents(pool) == model);
      require(std::ranges::is_sorted(model, std::greater{}, &Waiting::passes));
    }
  });
}

}  // namespace
}  // namespace balanceroute
