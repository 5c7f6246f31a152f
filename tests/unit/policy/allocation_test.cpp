// A warm round takes no memory from the heap: this program counts every allocation.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "policy/registry.hpp"
#include "policy/router.hpp"

namespace {

std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace balanceroute {
namespace {

constexpr std::uint32_t kWorkers = 8;
constexpr std::int32_t kSlots = 6;

// A fleet in steady overload: each turn some requests end, as many come, and a round is run.
class SteadyTraffic {
 public:
  explicit SteadyTraffic(const std::string& policy) : router_{"fleet", make_policy({.name = policy}).value(), 1} {
    group_ = router_.add_group("group");
    for (std::uint32_t i = 0; i < kWorkers; ++i) {
      router_.add_worker(group_, "http://host", static_cast<std::int32_t>(i), kSlots).value();
    }
    leases_.resize(kWorkers * kSlots);
    for (int i = 0; i < 100; ++i) submit();
  }

  // One turn; the allocations made by the step, the ends and the round.
  std::size_t turn() {
    const std::size_t before = allocations;
    router_.advance(group_, Steps{1});
    for (std::uint64_t i = draw_.below(4); i > 0; --i) end(leases_[draw_.below(leases_.size())]);
    const auto admissions = router_.round(group_, draw_.below(2) == 0);
    const std::size_t made = allocations - before;
    for (Admission& admission : admissions) {
      admission.lease.started();
      for (Lease& lease : leases_) {
        if (lease.live()) continue;
        lease = std::move(admission.lease);
        break;
      }
      submit();
    }
    return made;
  }

 private:
  // Cut, or finished: then policies learn from it.
  void end(Lease& lease) {
    if (draw_.below(4) == 0) {
      lease.release();
    } else {
      lease.finish(Tokens{static_cast<std::int64_t>(1 + draw_.below(60))});
    }
  }
  void submit() {
    const Request request{.id = RequestId{next_++}, .prompt = Tokens{static_cast<std::int64_t>(draw_.below(5000))}};
    EXPECT_TRUE(router_.submit(request));
  }

  Router router_;
  GroupId group_;
  std::vector<Lease> leases_;
  Random draw_{5};
  std::uint64_t next_ = 0;
};

TEST(Allocation, WarmRoundTakesNoMemory) {
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    SteadyTraffic traffic{std::string{name}};
    std::size_t cold = 0;
    for (int i = 0; i < 1000; ++i) cold += traffic.turn();
    EXPECT_GT(cold, 0U);  // the counter counts
    std::size_t warm = 0;
    for (int i = 0; i < 1000; ++i) warm += traffic.turn();
    EXPECT_EQ(warm, 0U);
  }
}

}  // namespace
}  // namespace balanceroute
