"""Clients that leave, and what the router's account says of it: reports A1 to A14 of docs/field-reports.md."""

import concurrent.futures
import random
import threading
import time

import pytest

from fleets import wait_until
from raw_clients import CHAT, STREAM, RawClient, ask
from raw_workers import ROLE, Deaf, LingersAfter, Silent, StallsAfter, Trickles, token
from upstream import whole_answer

BODIES = {
    "/v1/chat/completions": CHAT,
    "/v1/completions": {"model": "m", "prompt": "hi"},
    "/v1/responses": {"model": "m", "input": "hi"},
    "/v1/messages": {"model": "m", "max_tokens": 9, "messages": CHAT["messages"]},
    "/v1/embeddings": {"model": "m", "input": "hi"},
    "/rerank": {"model": "m", "query": "a", "documents": ["b"]},
    "/tokenize": {"model": "m", "prompt": "hi"},
}


def leave_once_asked(router, worker, path: str, body: dict) -> None:
    with RawClient(router.listen).post(path, body):
        wait_until(lambda: worker.received, "the worker has the request")
    worker.left.get(timeout=5)


def test_a01_client_that_leaves_ends_an_answer_in_one_piece(worker, route):
    """Law: a client that leaves before its answer closes the worker's connection and is no fault of the worker."""
    silent = worker(Silent)
    router = route(silent)
    leave_once_asked(router, silent, "/v1/chat/completions", CHAT)
    wait_until(router.is_empty, "nothing is left of the request")
    wait_until(router.final_lines, "it has its final line")
    line, = router.final_lines()
    assert (line["outcome"], line["status"]) == ("client_left", "499")
    assert (router.finished("client_left"), router.finished("upstream_error")) == (1, 0)
    assert router.metric("balanceroute_worker_in_flight_sequences") == 0
    assert router.workers()[silent.url]["last_fault"] in (None, "")


def test_a02_client_that_leaves_is_noticed_while_no_byte_moves(worker, route):
    """Law: a client that leaves ends its stream at once, though the worker has sent nothing but its head."""
    stalled = worker(StallsAfter)
    router = route(stalled)
    leave_once_asked(router, stalled, "/v1/chat/completions", STREAM)
    wait_until(router.is_empty, "nothing is left of the request")


@pytest.mark.parametrize("path", BODIES)
def test_a03_every_route_cancels(path, worker, route):
    """Law: a client that leaves ends its request on every path, in one piece or streamed."""
    silent = worker(Silent)
    router = route(silent)
    leave_once_asked(router, silent, path, BODIES[path])
    wait_until(lambda: router.outcomes() == ["client_left"], "the request ended as one whose client left")


def test_a04_each_of_many_that_leave_has_one_line_and_one_count(emulated):
    """Law: every request that was read has one final log line and one increment, whenever its client leaves."""
    requests = 1000
    _, router = emulated(ranks=4, slots=64)
    chance = random.Random(4)
    body = {**STREAM, "model": "emulated", "emulator": {"prompt_tokens": 10, "output_tokens": 20}}

    def ask_and_leave(seconds: float) -> None:
        with RawClient(router.listen).post("/v1/chat/completions", body):
            time.sleep(seconds)  # how long this client stays, not a wait for something

    with concurrent.futures.ThreadPoolExecutor(64) as clients:
        list(clients.map(ask_and_leave, [chance.uniform(0, 0.06) for _ in range(requests)]))
    wait_until(router.is_empty, "no lease is left")
    wait_until(lambda: router.finished() == requests, f"{requests} are counted")
    lines = router.final_lines()
    assert len(lines) == len({line["id"] for line in lines}) == requests
    assert router.finished("client_left") == router.outcomes().count("client_left") > requests / 10


def test_a05_load_is_given_back_without_any_answer(worker, route):
    """Law: load and slot go back when the request ends, not when an answer comes: here not even a connection is read."""
    deaf = worker(Deaf)
    router = route(deaf, slots=1)
    with RawClient(router.listen).post("/v1/chat/completions", CHAT):
        wait_until(lambda: router.metric("balanceroute_worker_in_flight_sequences") == 1, "the slot is taken")
    wait_until(lambda: router.metric("balanceroute_worker_in_flight_sequences") == 0, "the slot is free again")
    assert router.metric("balanceroute_worker_load_tokens") == 0


def test_a06_connection_of_a_cut_stream_is_closed_and_not_used_again(worker, route):
    """Law: when a client leaves in mid-stream the worker's connection is closed in both directions, never kept."""
    stalled = worker(StallsAfter, ROLE, token("hi"))
    router = route(stalled)
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        client.read_until(b"hi")
    wire = stalled.left.get(timeout=5)
    assert wire.takes_nothing()
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        client.read_until(b"hi")
    assert stalled.connections == 2


def test_a07_no_entry_is_dropped_for_its_age(worker, route):
    """Law: what a running request holds stays in the ledger for as long as it runs, whatever time limits there are."""
    trickling = worker(Trickles, 0.01)
    router = route(trickling, slots=1, timeouts={"admission_ms": 40, "first_byte_ms": 100, "stream_idle_ms": 200,
                                                 "client_stall_ms": 100, "worker_idle_ms": 20})
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        for number in range(10):
            client.received = b""
            for _ in range(8):
                client.read_until(b'"t"')
                client.received = client.received.partition(b'"t"')[2]
            lease, = router.ledger()["leases"]
            assert lease["generated_tokens"] >= 4 * number
        trickling.last.set()
        client.read_until(b"[DONE]")
    wait_until(router.is_empty, "the lease ends with the stream")


def test_a08_load_of_a_long_request_outlives_many_short_ones(emulated):
    """Law: a worker's load counts a request that has run for long, so that new ones go elsewhere."""
    _, router = emulated(ranks=2, slots=32, router={"fleet": {"policy": {"name": "least_tokens"}}})
    old = {"model": "emulated", "prompt": [7] * 5000, "stream": True, "emulator": {"output_tokens": 100_000}}
    new = {"model": "emulated", "prompt": [7] * 10, "emulator": {"output_tokens": 2}}
    with RawClient(router.listen).post("/v1/completions", old) as client:
        client.read_until(b"data:")
        busy, = (url for url, worker in router.workers().items() if worker["load_tokens"] >= 5000)
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _: ask(router.listen, "/v1/completions", new), range(100)))
        assert all(answer.status == 200 for answer in answers)
        assert router.workers()[busy]["load_tokens"] >= 5000
    wait_until(lambda: len(router.final_lines()) == 101, "all have ended")
    there = [line for line in router.final_lines() if f"http://{line['worker']}" == busy]
    assert [line["outcome"] for line in there] == ["client_left"]


def test_a09_the_engines_figures_never_overwrite_the_ledger(worker, route):
    """Law: KV usage that an engine reports and the load that the router has placed are two figures, shown apart."""

    class ReportsUsage(Silent):
        usage = 0.99

        def page(self, request):
            metrics = f'vllm:num_requests_running{{engine="0"}} 0\nvllm:num_requests_waiting{{engine="0"}} 0\n' \
                      f'vllm:kv_cache_usage_perc{{engine="0"}} {self.usage}\n'
            return whole_answer(metrics.encode())[0]

    reporting = worker(ReportsUsage)
    router = route(reporting, health={"interval_ms": 10})
    reported = "balanceroute_engine_kv_usage_ratio"
    wait_until(lambda: router.metric(reported) == 0.99, "the engine's figure is shown")
    assert router.metric("balanceroute_worker_load_tokens") == 0
    with RawClient(router.listen).post("/v1/completions", {"model": "m", "prompt": [7] * 500}):
        wait_until(lambda: router.metric("balanceroute_worker_load_tokens") == 500, "the load is what was placed")
        ReportsUsage.usage = 0.013
        wait_until(lambda: router.metric(reported) == 0.013, "the engine's figure is followed")
        assert router.metric("balanceroute_worker_load_tokens") == 500
    wait_until(router.is_empty, "nothing is left")


def test_a10_every_request_ends_while_workers_come_and_go(emulated):
    """Law: with workers added and removed all the time every request ends, by its answer or an error, in its time."""
    engines, router = emulated(ranks=3, slots=8, router={"timeouts": {"admission_ms": 2000}, "fleet": {
        "barrier": False, "policy": {"name": "join_shortest_queue"}}})
    url = engines.ready["groups"][0][2]
    over = threading.Event()
    changes = []

    def come_and_go() -> None:
        while not over.is_set():
            changes.append(router.command("DELETE", f"/workers?url={url}"))
            changes.append(router.command("POST", "/workers", {"group": "g", "url": url}))

    body = {"model": "emulated", "prompt": "hi", "emulator": {"prompt_tokens": 50, "output_tokens": 5}}
    churn = threading.Thread(target=come_and_go)
    churn.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(16) as clients:
            answers = list(clients.map(lambda _: ask(router.listen, "/v1/completions", body), range(600)))
    finally:
        over.set()
        churn.join(20)
    assert len(changes) > 10 and set(changes) <= {200, 201, 202}
    assert all(answer.whole and (answer.status == 200 or answer.error["code"]) for answer in answers)
    assert sum(answer.status == 200 for answer in answers) == 600
    wait_until(router.is_empty, "no lease is left")


def test_a11_every_worker_keeps_its_share_through_cancels_and_faults(emulated):
    """Law: of 16 workers each keeps its fair share of work while clients leave and engines fail, and no load is left."""
    workers, requests = 16, 960
    engines, router = emulated(ranks=workers, slots=4, router={
        "health": {"interval_ms": 0, "hold_after": 1000}, "fleet": {"barrier": False, "policy": {
            "name": "join_shortest_queue"}}})
    chance = random.Random(11)

    def one(number: int) -> None:
        fault = {"X_Emulator_Fault": "die_mid_stream:2"} if number % 100 == 50 else {}
        body = {**STREAM, "model": "emulated", "emulator": {"prompt_tokens": 50, "output_tokens": chance.randint(4, 12)}}
        with RawClient(router.listen).post("/v1/chat/completions", body, **fault) as client:
            if number % 20 == 10:
                client.read_until(b"data:")
            else:
                client.answer()

    with concurrent.futures.ThreadPoolExecutor(96) as clients:
        list(clients.map(one, range(requests)))
    wait_until(router.is_empty, "no lease is left")
    assert router.metric("balanceroute_worker_load_tokens") == 0
    wait_until(lambda: len(router.final_lines()) == requests, "each has its final line")
    share = requests / workers
    given = {url.removeprefix("http://"): 0 for url in engines.ready["groups"][0]}
    for line in router.final_lines():
        given[line["worker"]] += 1
    assert all(0.75 * share <= count <= 1.25 * share for count in given.values()), given


def test_a12_each_side_carries_what_it_works_at(emulated):
    """Law: a prompt is load of its prefill instance while that computes, of nobody while it waits for a worker, and of one
    decode worker with its answer."""
    _, router = emulated(ranks=2, slots=1, dialect="vllm_nixl", prefill_instances=1, prefill_fixed_ms=150)
    body = {"model": "emulated", "prompt": [7] * 4000, "stream": True, "emulator": {"output_tokens": 100_000}}
    with RawClient(router.listen).post("/v1/completions", body) as client:
        wait_until(lambda: router.metric("balanceroute_prefill_computing_tokens") == 4000, "the prefill side computes it")
        assert router.metric("balanceroute_worker_load_tokens") == 0
        client.read_until(b"data:")
        wait_until(lambda: router.metric("balanceroute_prefill_computing_tokens") == 0, "the prefill side is done")
        loads = sorted(worker["load_tokens"] for worker in router.workers().values())
        assert loads[0] == 0 and loads[1] >= 4000
        wait_until(lambda: router.metric("balanceroute_worker_load_tokens") >= 4020, "the load grows with the answer")
        with RawClient(router.listen).post("/v1/completions", body) as second:
            second.read_until(b"data:")
            with RawClient(router.listen).post("/v1/completions", body):
                wait_until(lambda: router.metric("balanceroute_pool_depth_requests") == 1, "the third finds no slot")
                wait_until(lambda: router.metric("balanceroute_prefill_computing_tokens") == 0, "it is computed")
                assert router.metric("balanceroute_prefill_held_tokens") == 4000
    wait_until(router.is_empty, "nothing is left")


def test_a13_a_slot_is_free_at_the_last_token(worker, route):
    """Law: slot and load are given back at the end that the stream tells, not when the worker closes."""
    lingering = worker(LingersAfter)
    router = route(lingering, slots=1)
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as first:
        first.read_until(b"[DONE]")
        wait_until(lambda: router.ledger()["leases_live"] == 0, "the lease ended at [DONE]")
        assert lingering.left.empty()
        with RawClient(router.listen).post("/v1/chat/completions", STREAM) as second:
            second.read_until(b"[DONE]")


def test_a14_nobody_is_bound_to_a_busy_worker(worker, route):
    """Law: where a request goes depends on loads alone, so that a session never stays at a worker that is full."""
    busy, *idle = [worker(Silent) for _ in range(4)]
    router = route(busy, *idle, slots=4)
    clients = [RawClient(router.listen).post("/v1/chat/completions", {**CHAT, "user": "someone"}, X_Session_Id="s1")
               for _ in range(8)]
    wait_until(lambda: [len(one.received) for one in (busy, *idle)] == [2, 2, 2, 2], "each has two of one session's")
    for client in clients:
        client.leave()
    wait_until(router.is_empty, "nothing is left")
