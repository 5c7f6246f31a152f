"""What long lives, floods of names and ends of processes do to the router: reports A46 and A55 to A58."""

import concurrent.futures
import json
import signal
import threading
import time

from fleets import fetch, wait_until
from raw_clients import CHAT, STREAM, RawClient, ask
from raw_workers import ComesLater, RawWorker, SlowToTellItsHealth, StallsAfter, Trickles, token
from watched_router import WatchedRouter


def series(router: WatchedRouter) -> int:
    return len(router.samples())


def get_status(address: str, path: str) -> int:
    with RawClient(address) as client:
        client.send(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
        return client.answer().status


def test_a55_names_that_clients_make_up_are_no_labels(worker, route):
    """Law: model names, paths and headers that clients make up add no series; a 404 is told apart from a success."""
    router = route(worker(RawWorker), fleet={"models": [{"name": "m"}]})
    assert ask(router.listen, "/v1/chat/completions", CHAT).status == 200
    assert ask(router.listen, "/v1/chat/completions", {**CHAT, "model": "unknown"}).status == 404
    assert get_status(router.listen, "/nothing") == 404
    before, succeeded = series(router), router.finished("ok")
    for number in range(300):
        assert ask(router.listen, "/v1/chat/completions", {**CHAT, "model": f"model-{number}"},
                   Authorization=f"Bearer tenant-{number}").status == 404
        assert get_status(router.listen, f"/v1/path-{number}?a={number}") == 404
    assert series(router) == before
    assert router.finished("ok") == succeeded
    assert router.finished("client_error") == 301
    assert router.metric("balanceroute_http_unknown_paths_total") == 301


def test_a56_memory_threads_and_descriptors_stay(worker, route):
    """Law: unique prompts and workers that come and go leave memory, threads and descriptors where they were."""
    guest = worker(RawWorker)
    router = route(worker(RawWorker), worker(RawWorker), slots=16, fleet={"policy": {
        "name": "br_h", "predictor": "exact_match", "prediction": {"max_keys": 64}}})

    def prompts(first: int) -> None:
        with RawClient(router.listen) as client:
            for number in range(500):
                body = {**CHAT, "messages": [{"role": "user", "content": f"{first}-{number} " + "x" * 2000}]}
                assert client.post("/v1/chat/completions", body, close=False).next_answer().status == 200

    def churn(times: int) -> None:
        for _ in range(times):
            assert router.command("POST", "/workers", {"group": "g", "url": guest.url}) in (200, 201)
            assert router.command("DELETE", f"/workers?url={guest.url}") == 200
            wait_until(lambda: guest.url not in router.workers(), "it has left")

    prompts(0)
    churn(20)
    before = (router.threads(), router.resident_bytes(), series(router))
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        list(clients.map(prompts, range(1, 5)))
    churn(150)
    wait_until(lambda: router.descriptors() < 60, "connections are closed")
    assert router.threads() == before[0]
    assert series(router) == before[2]
    assert router.resident_bytes() - before[1] < 8 * 1024 * 1024


def test_a57_sigterm_lets_streams_end(worker, route):
    """Law: at SIGTERM readiness and the listener go first, streams end by themselves within the grace time."""
    trickling = worker(Trickles, 0.005)
    router = route(trickling, slots=64, timeouts={"drain_ms": 20_000})
    clients = [RawClient(router.listen).post("/v1/chat/completions", STREAM) for _ in range(20)]
    for client in clients:
        client.read_until(b'"t"')
    router.process.signal(signal.SIGTERM)
    wait_until(lambda: not listens(router.listen), "new connections are refused")
    assert json.loads(body_of(f"{router.admin}/health/ready"))["status"] == "draining"
    assert router.process.is_running()
    trickling.last.set()
    answers = [client.answer() for client in clients]
    assert all(answer.whole and answer.events[-1] == "[DONE]" for answer in answers)
    assert router.process.wait() == 0


def test_a57_streams_that_outlast_the_grace_end_by_an_error(worker, route):
    """Law: a stream that the end of the router cuts has an error event, never what looks like its own end."""
    router = route(worker(StallsAfter, token("first")), timeouts={"drain_ms": 100})
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        client.read_until(b"first")
        router.process.signal(signal.SIGTERM)
        answer = client.answer()
    assert answer.chunks[-1]["error"]["code"]
    assert "[DONE]" not in answer.events and not answer.whole
    assert router.process.wait() == 0


def test_a57_a_second_signal_ends_at_once(worker, route):
    """Law: who asks twice need not wait for the grace time."""
    router = route(worker(StallsAfter, token("first")), timeouts={"drain_ms": 60_000})
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        client.read_until(b"first")
        router.process.signal(signal.SIGTERM)
        wait_until(lambda: not listens(router.listen), "the first signal was heard")
        router.process.signal(signal.SIGTERM)
        assert router.process.wait(5) == 0


def test_a58_a_late_health_page_does_not_remove_a_worker_that_works(worker, route):
    """Law: a worker whose tokens arrive stays in, however late its health page is."""
    busy = worker(SlowToTellItsHealth, 0.005, 0.2)
    router = route(busy, health={"interval_ms": 10, "timeout_ms": 50, "unhealthy_after": 3})
    wait_until(router.is_ready, "its first health page was in time")
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        client.read_until(b'"t"')
        wait_until(lambda: busy.late_probes > 8, "many probes went unanswered")
        assert router.metric("balanceroute_worker_transitions_total", state="dead") == 0
        busy.last.set()
        client.read_until(b"[DONE]")


def test_a58_a_fleet_starts_without_some_of_its_workers(worker, route):
    """Law: with one of four workers up the router starts and serves; the others join when they come, unasked."""
    up, late = worker(RawWorker), [worker(ComesLater) for _ in range(3)]
    router = route(*late, up, fleet={"barrier": False}, health={"interval_ms": 20, "unhealthy_after": 1,
                                                                "healthy_after": 1})
    assert "starts degraded: 1 of 4 workers take requests" in router.log()
    assert ask(router.listen, "/v1/chat/completions", CHAT).status == 200
    for one in late:
        one.come()
    wait_until(lambda: router.metric("balanceroute_worker_ready") == 4, "all take requests")


def test_a58_a_router_that_was_killed_comes_back_by_itself(emulated, start):
    """Law: killed under load, clients see broken streams and engines free everything; a new process serves at once."""
    engines, router = emulated(ranks=2, slots=8, dialect="vllm_nixl", prefill_instances=1, lease_seconds=0.5,
                               router={"health": {"interval_ms": 50}})
    body = {**STREAM, "model": "emulated", "emulator": {"prompt_tokens": 50, "output_tokens": 100_000}}
    clients = [RawClient(router.listen).post("/v1/chat/completions", body) for _ in range(24)]  # 8 of them wait
    state = f"{engines.ready['groups'][0][0]}/emulator/state"
    wait_until(lambda: sum(rank["running"] for rank in json.loads(fetch(state))["ranks"]) == 16, "every slot is taken")
    router.process.kill()
    answers = [client.answer_if_any() for client in clients]
    assert not any(answer and (answer.whole or "[DONE]" in answer.events) for answer in answers)
    began = time.monotonic()
    again = WatchedRouter(start("serve", "--config", router.process.command[-1]))
    answer = ask(again.listen, "/v1/chat/completions",
                 {**CHAT, "model": "emulated", "emulator": {"prompt_tokens": 50, "output_tokens": 3}})
    assert answer.status == 200
    assert time.monotonic() - began < 2
    wait_until(lambda: json.loads(fetch(state))["holds_nothing"], "the engines hold nothing")
    wait_until(again.is_empty, "the new ledger is empty")
    wait_until(lambda: again.metric("balanceroute_engine_running_sequences") == 0 ==
               again.metric("balanceroute_engine_background_sequences"), "ledger and engines agree")


def test_a46_no_descriptor_is_left(worker, route):
    """Law: out of descriptors the router stops to accept without spinning, says so once, and goes on when some come
    back."""
    limit = 128
    router = route(worker(RawWorker), limits={"connections": 10 * limit}, under=("prlimit", f"--nofile={limit}:{limit}"))
    crowd = [RawClient(router.listen) for _ in range(3 * limit)]
    wait_until(lambda: "pausing" in router.log(), "the router says that it pauses")
    cpu, began = router.cpu_seconds(), time.monotonic()
    wait_until(lambda: time.monotonic() - began > 1, "a spinning loop has had the time to show")
    assert router.cpu_seconds() - cpu < 0.5 * (time.monotonic() - began)
    assert router.log().count("pausing") == 1
    for client in crowd:
        client.leave()
    assert ask(router.listen, "/v1/chat/completions", CHAT).status == 200
    wait_until(lambda: "accept: goes on" in router.log(), "the router says that it goes on")


def test_a46_the_soft_limit_is_raised(worker, route):
    """Law: the soft limit of descriptors is raised to the hard one at the start, and the log tells it."""
    router = route(worker(RawWorker), under=("prlimit", "--nofile=256:2048"))
    assert "descriptors limit=2048" in router.log()


def listens(address: str) -> bool:
    try:
        RawClient(address).leave()
        return True
    except OSError:
        return False


def body_of(url: str) -> str:
    """Of an answer with any status."""
    host, _, path = url.removeprefix("http://").partition("/")
    with RawClient(host) as client:
        return client.send(f"GET /{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()).answer().body.decode()
