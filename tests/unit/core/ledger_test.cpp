#include "core/ledger.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace balanceroute {
namespace {

// A fleet of one group of three workers with four slots each.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    for (std::int32_t rank = 0; rank < 3; ++rank) ledger.add_worker(group, "http://host", rank, 4).value();
  }

  Lease admit(std::uint64_t id, WorkerId worker, std::int64_t prompt, std::int32_t sequences = 1) {
    return ledger.reserve(worker, {.id = RequestId{id}, .prompt = Tokens{prompt}, .sequences = sequences}).value();
  }
  Tokens load(WorkerId worker) const { return ledger.worker(worker).load; }
  std::int32_t used(WorkerId worker) const { return ledger.worker(worker).sequences; }

  Ledger ledger{"fleet"};
  GroupId group = ledger.add_group("group");
  WorkerId w0{0}, w1{1}, w2{2};
};

// Law: slots and load are charged when reserved, not when the request runs.
TEST_F(LedgerTest, ReserveChargesAtOnce) {
  const Lease lease = admit(1, w1, 100);
  EXPECT_EQ(load(w1), Tokens{100});
  EXPECT_EQ(used(w1), 1);
  EXPECT_EQ(ledger.view(group).free_slots[1], 3);
  EXPECT_EQ(ledger.leases().at(0).state, LeaseState::dispatched);
}

// Law: the end of a lease gives back exactly what it took, however the request grew.
TEST_F(LedgerTest, LeaseGivesBackOnItsEnd) {
  {
    Lease lease = admit(1, w0, 100);
    lease.started();
    ledger.advance(group, Steps{7});
    lease.progress(Tokens{30});
    ledger.advance(group, Steps{2});
    EXPECT_EQ(load(w0), Tokens{132});
  }
  EXPECT_EQ(load(w0), Tokens{0});
  EXPECT_EQ(used(w0), 0);
  EXPECT_EQ(ledger.live_leases(), 0U);
}

// Law: a worker with places ahead is given so many more, and they are charged as the others; none of its requests may
// be wider than what it decodes at once.
TEST_F(LedgerTest, PlacesAheadAreFilledAfterTheSlots) {
  const GroupId other = ledger.add_group("other");
  const WorkerId ahead = ledger.add_worker(other, "http://ahead", 0, {2, 1}).value();
  EXPECT_FALSE(ledger.add_worker(other, "http://ahead", 1, {2, -1}));
  std::vector<Lease> leases;
  for (std::uint64_t id = 1; id <= 3; ++id) leases.push_back(admit(id, ahead, 10));
  EXPECT_EQ(load(ahead), Tokens{30});
  EXPECT_EQ(ledger.view(other).free_slots[0], 0);
  EXPECT_EQ(ledger.view(other).slots[0], 2);
  EXPECT_EQ(ledger.reserve(ahead, {.id = RequestId{4}, .prompt = Tokens{1}}).error(), AdmitError::NoFreeSlots);
  leases.clear();
  EXPECT_EQ(ledger.view(other).free_slots[0], 3);
  EXPECT_EQ(ledger.worker(ahead).slots.ahead, 1);
}

// Law: a limit holds back new sequences and takes nothing from those that are there.
TEST_F(LedgerTest, LimitBoundsWhatAWorkerIsGiven) {
  const std::vector<Lease> before = [&] {
    std::vector<Lease> leases;
    for (std::uint64_t id = 1; id <= 2; ++id) leases.push_back(admit(id, w1, 10));
    return leases;
  }();
  ASSERT_TRUE(ledger.limit(w1, 3));
  EXPECT_EQ(ledger.view(group).free_slots[1], 1);
  {
    const Lease last = admit(3, w1, 10);
    EXPECT_EQ(ledger.view(group).free_slots[1], 0);
    const auto refused = ledger.reserve(w1, {.id = RequestId{4}, .prompt = Tokens{1}});
    EXPECT_EQ(refused.error(), AdmitError::NoFreeSlots);
  }
  ASSERT_TRUE(ledger.limit(w1, 1));  // less than it has
  EXPECT_EQ(ledger.view(group).free_slots[1], 0);
  ASSERT_TRUE(ledger.limit(w1, std::nullopt));
  EXPECT_EQ(ledger.view(group).free_slots[1], 2);
  EXPECT_EQ(ledger.limit(WorkerId{9}, 1).error(), WorkerError::UnknownWorker);
}

// Law: only running sequences grow with the step clock, and only those of the group that stepped.
TEST_F(LedgerTest, AdvanceGrowsRunningSequencesOfItsGroup) {
  const GroupId other = ledger.add_group("other");
  const WorkerId elsewhere = ledger.add_worker(other, "http://elsewhere", 0, 4).value();
  const Lease waiting = admit(1, w0, 10);
  Lease running = admit(2, w0, 20, 3);
  Lease apart = admit(3, elsewhere, 5);
  running.started();
  apart.started();
  ledger.advance(group, Steps{4});
  EXPECT_EQ(load(w0), Tokens{10 + 3 * 24});
  EXPECT_EQ(load(elsewhere), Tokens{5});
}

// Law: a report of progress is the truth: it replaces what the clock assumed, up or down.
TEST_F(LedgerTest, ProgressCorrectsTheEstimate) {
  Lease lease = admit(1, w0, 100, 2);
  lease.started();
  ledger.advance(group, Steps{10});
  lease.progress(Tokens{6});
  EXPECT_EQ(load(w0), Tokens{2 * 106});
  lease.progress(Tokens{25});
  EXPECT_EQ(load(w0), Tokens{2 * 125});
  EXPECT_EQ(ledger.leases().at(0).generated, Tokens{25});
}

// Law: a request that reports tokens runs, whether or not anybody said so.
TEST_F(LedgerTest, ProgressImpliesStarted) {
  Lease lease = admit(1, w0, 100);
  lease.progress(Tokens{1});
  EXPECT_EQ(ledger.leases().at(0).state, LeaseState::running);
  ledger.advance(group, Steps{1});
  EXPECT_EQ(load(w0), Tokens{102});
}

// Law: KV space is held in whole blocks by each sequence from its admission on, and grows block by block.
TEST(LedgerKv, SequencesHoldWholeBlocks) {
  Ledger ledger{"fleet", {.load_model = {}, .kv_block = Tokens{16}}};
  const GroupId group = ledger.add_group("group");
  const WorkerId worker = ledger.add_worker(group, "http://host", 0, 8, {.capacity = Tokens{1000}}).value();
  const auto kv_free = [&] { return ledger.view(group).kv_free[0]; };
  Lease lease =
      ledger.reserve(worker, {.id = RequestId{1}, .prompt = Tokens{30}, .generated = Tokens{1}, .sequences = 3})
          .value();
  EXPECT_EQ(kv_free(), Tokens{1000 - 3 * 32});
  ledger.advance(group, Steps{5});
  EXPECT_EQ(kv_free(), Tokens{1000 - 3 * 32});  // dispatched: it does not grow
  lease.started();
  ledger.advance(group, Steps{1});
  EXPECT_EQ(kv_free(), Tokens{1000 - 3 * 32});  // 32 tokens fill two blocks
  ledger.advance(group, Steps{1});
  EXPECT_EQ(kv_free(), Tokens{1000 - 3 * 48});
  lease.progress(Tokens{2});
  EXPECT_EQ(kv_free(), Tokens{1000 - 3 * 32});
  lease.release();
  EXPECT_EQ(kv_free(), Tokens{1000});
}

// Law: an admission takes what is neither held nor reserved, to the last token; what runs may use the reserve and more.
TEST(LedgerKv, AdmissionsLeaveTheReserve) {
  Ledger ledger{"fleet"};
  const GroupId group = ledger.add_group("group");
  const WorkerId worker =
      ledger.add_worker(group, "http://host", 0, 8, {.capacity = Tokens{100}, .reserve = Tokens{10}}).value();
  EXPECT_EQ(ledger.view(group).kv_space[0], Tokens{90});
  EXPECT_EQ(ledger.reserve(worker, {.id = RequestId{1}, .prompt = Tokens{91}}).error(), AdmitError::NoKvSpace);
  Lease lease = ledger.reserve(worker, {.id = RequestId{1}, .prompt = Tokens{90}}).value();
  EXPECT_EQ(ledger.reserve(worker, {.id = RequestId{2}, .prompt = Tokens{1}}).error(), AdmitError::NoKvSpace);
  lease.started();
  ledger.advance(group, Steps{15});
  EXPECT_EQ(ledger.view(group).kv_free[0], Tokens{-15});
  EXPECT_EQ(ledger.add_worker(group, "http://host", 1, 8, {.capacity = Tokens{10}, .reserve = Tokens{10}}).error(),
            WorkerError::NoKvSpace);
}

// Law: the largest prompt is held by an idle worker with slots for its sequences, and one token more by none.
TEST(LedgerKv, LargestPromptIsTheLastThatFits) {
  Ledger ledger{"fleet", {.load_model = {}, .kv_block = Tokens{16}}};
  EXPECT_EQ(ledger.largest_prompt(1), Tokens{0});
  const GroupId group = ledger.add_group("g");
  ledger.add_worker(group, "http://a", 0, 2, {.capacity = Tokens{1000}, .reserve = Tokens{100}}).value();
  ledger.add_worker(group, "http://b", 0, 1, {.capacity = Tokens{2000}, .reserve = Tokens{500}}).value();
  for (const auto& [sequences, largest] : {std::pair{1, 1488}, std::pair{2, 448}, std::pair{3, 0}}) {
    const Request fits{.id = RequestId{1}, .prompt = ledger.largest_prompt(sequences), .sequences = sequences};
    EXPECT_EQ(fits.prompt, Tokens{largest});
    Request more = fits;
    more.prompt = more.prompt + Tokens{1};
    const auto space = [&](std::int32_t of) { return of == 1 ? Tokens{1500} : Tokens{of == 2 ? 900 : 0}; };
    EXPECT_LE(ledger.kv_on_entry(fits), space(sequences));
    EXPECT_GT(ledger.kv_on_entry(more), space(sequences));
  }
  ledger.add_worker(group, "http://c", 0, 4).value();
  EXPECT_EQ(ledger.largest_prompt(4), Tokens{kMaxTokens.count() / 4});
}

// Law: a resumed request weighs its prompt and what it had generated, for each sequence.
TEST_F(LedgerTest, AgeOnEntryCounts) {
  const Lease lease =
      ledger.reserve(w0, {.id = RequestId{1}, .prompt = Tokens{100}, .generated = Tokens{40}, .sequences = 2}).value();
  EXPECT_EQ(load(w0), Tokens{280});
}

TEST_F(LedgerTest, StartedTwiceIsStartedOnce) {
  Lease lease = admit(1, w0, 10);
  lease.started();
  ledger.advance(group, Steps{3});
  lease.started();
  EXPECT_EQ(load(w0), Tokens{13});
  EXPECT_EQ(ledger.leases().at(0).generated, Tokens{3});
}

// Law: a moved lease is one lease: the last owner gives back, once.
TEST_F(LedgerTest, MovedLeaseGivesBackOnce) {
  Lease first = admit(1, w0, 10);
  Lease second = std::move(first);
  EXPECT_FALSE(first.live());  // NOLINT(bugprone-use-after-move): that it is not live is the law
  EXPECT_TRUE(second.live());
  first.release();
  EXPECT_EQ(used(w0), 1);
  second = admit(2, w0, 20);  // what it held is given back
  EXPECT_EQ(load(w0), Tokens{20});
  second.release();
  second.release();
  EXPECT_EQ(used(w0), 0);
}

// Law: a request has one worker at a time; after its lease has ended it may come again.
TEST_F(LedgerTest, SecondAdmissionOfARequestIsRefused) {
  Lease lease = admit(1, w0, 10);
  const auto again = ledger.reserve(w1, {.id = RequestId{1}, .prompt = Tokens{10}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), AdmitError::AlreadyAdmitted);
  EXPECT_EQ(load(w1), Tokens{0});
  lease.release();
  EXPECT_TRUE(ledger.reserve(w1, {.id = RequestId{1}, .prompt = Tokens{10}}));
}

// Law: a request needs all its slots on one worker.
TEST_F(LedgerTest, SequencesNeedTheirSlotsTogether) {
  const Lease three = admit(1, w0, 10, 3);
  const auto two = ledger.reserve(w0, {.id = RequestId{2}, .prompt = Tokens{1}, .sequences = 2});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error(), AdmitError::NoFreeSlots);
  const Lease one = admit(3, w0, 10);
  EXPECT_EQ(ledger.view(group).free_slots[0], 0);
}

TEST_F(LedgerTest, SizesThatCannotBeCountedAreRefused) {
  const auto refused = [&](Request request) { return ledger.reserve(w0, request).error(); };
  EXPECT_EQ(refused({.id = RequestId{1}, .prompt = Tokens{1}, .sequences = 0}), AdmitError::NoSequence);
  EXPECT_EQ(refused({.id = RequestId{1}, .prompt = Tokens{-1}}), AdmitError::NegativeTokens);
  EXPECT_EQ(refused({.id = RequestId{1}, .prompt = kMaxTokens + Tokens{1}}), AdmitError::TooManyTokens);
  EXPECT_EQ(refused({.id = RequestId{1}, .prompt = Tokens{kMaxTokens.count() / 2}, .sequences = 3}),
            AdmitError::TooManyTokens);
  EXPECT_TRUE(ledger.reserve(w0, {.id = RequestId{1}, .prompt = kMaxTokens}));
}

// Law: a draining worker keeps what it has and its place at the barrier, and takes nothing.
TEST_F(LedgerTest, DrainingWorkerTakesNothing) {
  Lease lease = admit(1, w1, 10);
  ASSERT_TRUE(ledger.drain(w1));
  EXPECT_EQ(ledger.reserve(w1, {.id = RequestId{2}, .prompt = Tokens{1}}).error(), AdmitError::WorkerNotReady);
  EXPECT_EQ(ledger.view(group).size(), 3U);
  EXPECT_EQ(load(w1), Tokens{10});
  ASSERT_TRUE(ledger.resume(w1));
  EXPECT_TRUE(ledger.reserve(w1, {.id = RequestId{2}, .prompt = Tokens{1}}));
}

// Law: only an idle worker leaves; the others keep their loads and their order.
TEST_F(LedgerTest, RemovedWorkerLeavesTheArrays) {
  Lease on1 = admit(1, w1, 10);
  Lease on2 = admit(2, w2, 20);
  ASSERT_TRUE(ledger.drain(w1));
  EXPECT_EQ(ledger.remove(w1).error(), WorkerError::StillBusy);
  on1.release();
  ASSERT_TRUE(ledger.remove(w1));
  const GroupView& view = ledger.view(group);
  ASSERT_EQ(view.size(), 2U);
  EXPECT_EQ(view.workers[1], w2);
  EXPECT_EQ(view.loads[1], Tokens{20});
  on2.started();
  ledger.advance(group, Steps{5});
  EXPECT_EQ(load(w2), Tokens{25});
  EXPECT_EQ(ledger.remove(w1).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(ledger.worker(w1).state, WorkerState::removed);
}

// Law: a restart empties the worker; leases of before give back nothing and change nothing.
TEST_F(LedgerTest, RestartVoidsLeases) {
  Lease before = admit(1, w0, 10);
  Lease elsewhere = admit(2, w1, 7);
  ASSERT_TRUE(ledger.restart(w0));
  EXPECT_EQ(ledger.incarnation(w0), 1U);
  EXPECT_FALSE(before.live());
  EXPECT_TRUE(elsewhere.live());
  Lease after = admit(1, w0, 50);  // the same request may come again
  before.started();
  before.progress(Tokens{1000});
  before.release();
  EXPECT_EQ(load(w0), Tokens{50});
  EXPECT_EQ(used(w0), 1);
}

// Law: a dead worker is gone from the barrier, and while it is, its group takes no admissions.
TEST_F(LedgerTest, DeadWorkerStopsAdmissionsToItsGroup) {
  const Lease lost = admit(1, w0, 10);
  const Lease kept = admit(2, w1, 20);
  ASSERT_TRUE(ledger.declare_dead(w0));
  EXPECT_FALSE(lost.live());
  EXPECT_TRUE(kept.live());
  EXPECT_EQ(ledger.view(group).size(), 2U);
  EXPECT_EQ(ledger.reserve(w1, {.id = RequestId{3}, .prompt = Tokens{1}}).error(), AdmitError::WorkerNotReady);
  EXPECT_EQ(ledger.drain(w0).error(), WorkerError::WorkerDead);
  ASSERT_TRUE(ledger.restart(w0));
  EXPECT_EQ(ledger.view(group).workers[0], w0);  // back in its place
  EXPECT_TRUE(ledger.reserve(w0, {.id = RequestId{3}, .prompt = Tokens{1}}));
  EXPECT_TRUE(ledger.reserve(w1, {.id = RequestId{4}, .prompt = Tokens{1}}));
}

// Law: nobody waits for a worker that was never there; when it comes for the first time no life of it has passed.
TEST_F(LedgerTest, AbsentWorkerStopsNobody) {
  const WorkerId late = ledger.add_worker(group, "http://late", 0, 4, {}, WorkerState::absent).value();
  EXPECT_EQ(ledger.worker(late).state, WorkerState::absent);
  EXPECT_EQ(ledger.view(group).size(), 3U);
  EXPECT_TRUE(ledger.reserve(w0, {.id = RequestId{1}, .prompt = Tokens{1}}));
  EXPECT_EQ(ledger.reserve(late, {.id = RequestId{2}, .prompt = Tokens{1}}).error(), AdmitError::WorkerNotReady);
  ASSERT_TRUE(ledger.declare_dead(late));  // it was not there, so nothing is lost
  EXPECT_EQ(ledger.worker(late).state, WorkerState::absent);
  ASSERT_TRUE(ledger.restart(late));
  EXPECT_EQ(ledger.incarnation(late), 0U);
  EXPECT_TRUE(ledger.reserve(late, {.id = RequestId{2}, .prompt = Tokens{1}}));
  const WorkerId never = ledger.add_worker(group, "http://never", 0, 4, {}, WorkerState::absent).value();
  ASSERT_TRUE(ledger.remove(never));
  EXPECT_TRUE(ledger.reserve(w0, {.id = RequestId{3}, .prompt = Tokens{1}}));
}

TEST_F(LedgerTest, RemovingTheDeadWorkerFreesItsGroup) {
  ASSERT_TRUE(ledger.declare_dead(w0));
  ASSERT_TRUE(ledger.remove(w0));
  EXPECT_TRUE(ledger.reserve(w1, {.id = RequestId{1}, .prompt = Tokens{1}}));
}

// Law: without a barrier workers do not wait for one another, so one death stops nobody else.
TEST_F(LedgerTest, WithoutBarrierADeathConcernsOneWorker) {
  const GroupId loose = ledger.add_group("loose", false);
  const WorkerId a = ledger.add_worker(loose, "http://a", 0, 1).value();
  const WorkerId b = ledger.add_worker(loose, "http://b", 0, 1).value();
  ASSERT_TRUE(ledger.declare_dead(a));
  EXPECT_TRUE(ledger.reserve(b, {.id = RequestId{1}, .prompt = Tokens{1}}));
}

// Law: a worker's key is its own in the fleet; when it is gone for good the key is free, the id is not.
TEST_F(LedgerTest, WorkerIdsAreNeverReused) {
  EXPECT_EQ(ledger.add_worker(group, "http://host", 1, 4).error(), WorkerError::DuplicateWorker);
  EXPECT_EQ(ledger.add_worker(group, "http://host", 9, 0).error(), WorkerError::NoSlots);
  EXPECT_EQ(ledger.add_worker(GroupId{7}, "http://host", 9, 1).error(), WorkerError::UnknownGroup);
  ASSERT_TRUE(ledger.remove(w1));
  EXPECT_EQ(ledger.add_worker(group, "http://host", 1, 4).value(), WorkerId{3});
  EXPECT_EQ(ledger.worker(WorkerId{3}).key,
            (WorkerKey{.fleet = "fleet", .group = "group", .url = "http://host", .rank = 1}));
}

// Law: the sequences of a request may end one by one; each gives back its own slot, load and KV space as they are then,
// and the last one the rest, to zero.
TEST_F(LedgerTest, SequencesMayEndOneByOne) {
  Lease lease = admit(5, w1, 20, 3);
  lease.started();
  ledger.advance(group, Steps{4});
  lease.finish_one(Tokens{4});
  EXPECT_EQ(ledger.worker(w1).sequences, 2);
  EXPECT_EQ(ledger.worker(w1).load, Tokens{2 * 24});
  ledger.advance(group, Steps{1});
  EXPECT_EQ(ledger.worker(w1).load, Tokens{2 * 25});
  lease.finish_one(Tokens{5});
  EXPECT_EQ(ledger.leases().at(0).request.sequences, 1);
  EXPECT_EQ(ledger.leases().at(0).weight, Tokens{25});
  EXPECT_TRUE(lease.live());
  lease.finish_one(Tokens{5});
  EXPECT_FALSE(lease.live());
  EXPECT_EQ(ledger.worker(w1).sequences, 0);
  EXPECT_EQ(ledger.worker(w1).load, Tokens{0});
  lease.finish_one(Tokens{5});
  EXPECT_EQ(ledger.worker(w1).sequences, 0);
  ledger.advance(group, Steps{7});
  EXPECT_EQ(ledger.worker(w1).load, Tokens{0});
}

// Law: the list of leases shows each live one with its weight now.
TEST_F(LedgerTest, LeasesAreListedByRequest) {
  Lease second = admit(5, w1, 20, 2);
  const Lease first = admit(3, w0, 10);
  second.started();
  ledger.advance(group, Steps{3});
  const auto leases = ledger.leases();
  ASSERT_EQ(leases.size(), 2U);
  EXPECT_EQ(leases[0].request.id, RequestId{3});
  EXPECT_EQ(leases[1].worker, w1);
  EXPECT_EQ(leases[1].state, LeaseState::running);
  EXPECT_EQ(leases[1].request.sequences, 2);
  EXPECT_EQ(leases[1].weight, Tokens{46});
  EXPECT_EQ(ledger.worker_of(RequestId{5}), w1);
  EXPECT_EQ(ledger.worker_of(RequestId{4}), std::nullopt);
}

}  // namespace
}  // namespace balanceroute
