"""Connections that are stale, refused, slow, too many or of another family: reports A38 to A50."""

import asyncio
import concurrent.futures
import json
import resource
import socket

import pytest

from fleets import wait_until
from raw_clients import CHAT, STREAM, RawClient, ask
from raw_workers import (Answers, AnswersAndCloses, BreaksWhenReused, ClosesSoon, ClosesWhenReused, NarrowDoor, RawWorker,
                         Resets, Silent, refusing_url, whole_chat)


def test_a19_a_crowd_at_a_narrow_door(worker, route):
    """Law: many bodies at once, before a worker that accepts few, arrive whole or end by an error in their time."""
    clients = 1500
    door = worker(NarrowDoor, 128)
    # The system may drop what finds the door shut, and sends it again when nobody waits for it any more.
    router = route(door, slots=4 * clients, timeouts={"connect_ms": 15_000, "first_byte_ms": 4000})
    host, port = router.listen.split(":")

    async def post(number: int) -> tuple[int, bytes]:
        body = json.dumps({"model": "m", "prompt": f"{number:016d}" + "x" * 10_000}).encode()
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
                     % len(body) + body)
        answer = await reader.read()
        writer.close()
        return int(answer.split(b" ")[1]), answer

    async def crowd() -> list[tuple[int, bytes]]:
        return await asyncio.gather(*(post(number) for number in range(clients)))

    answers = asyncio.run(crowd())
    assert {status for status, _ in answers} <= {200, 503, 504}
    assert all(b"%016d/10016" % number in answer for number, (status, answer) in enumerate(answers) if status == 200)
    assert sum(status == 200 for status, _ in answers) > clients / 2


def test_a38_a_connection_that_died_is_replaced(worker, route):
    """Law: a kept connection that its worker closes, even at the moment of the next request, costs no request."""
    closing = worker(ClosesWhenReused)
    router = route(closing)
    with RawClient(router.listen) as client:
        for _ in range(50):
            assert client.post("/v1/chat/completions", CHAT, close=False).next_answer().status == 200
    assert len(closing.received) == 50
    assert set(router.outcomes()) <= {"ok"}


def test_a38_idle_connections_are_kept_less_long_than_engines_do(run):
    """Law: by default an idle connection is given up before the 5 s after which engines close it."""
    row, = (line for line in run("config", "reference").stdout.splitlines() if "timeouts.worker_idle_ms" in line)
    assert int(row.split("|")[4].strip(" `")) < 5000


def test_a39_no_client_sees_that_two_idle_limits_race(worker, route):
    """Law: where worker and router give an idle connection up at the same time no client has an error."""
    tries, idle = 4000, 0.002
    racing = worker(ClosesSoon, 2 * idle, 39)
    router = route(racing, slots=16, timeouts={"worker_idle_ms": 1000 * idle})

    def many(_) -> set[int]:
        with RawClient(router.listen) as client:
            return {client.post("/v1/chat/completions", CHAT, close=False).next_answer().status
                    for _ in range(tries // 4)}

    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        assert set.union(*clients.map(many, range(4))) == {200}
    assert 4 < racing.connections < tries


def test_a40_keeping_connections_can_be_switched_off(worker, route):
    """Law: for engines whose idle limit leaves no margin no connection is used twice."""
    engine = worker(RawWorker)
    router = route(engine, timeouts={"worker_idle_ms": 0})
    assert [ask(router.listen, "/v1/chat/completions", CHAT).status for _ in range(5)] == [200] * 5
    assert engine.connections == 5


def test_a41_what_was_begun_is_not_sent_again(worker, route):
    """Law: a kept connection that breaks after a byte of the answer is the worker's failure; the request is not repeated."""
    breaking = worker(BreaksWhenReused)
    router = route(breaking)
    answers = [ask(router.listen, "/v1/chat/completions", CHAT) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 502]
    assert len(breaking.received) == 2
    wait_until(lambda: router.workers()[breaking.url]["last_fault"], "the worker is charged")


BROKEN = {
    "refuses": (refusing_url, "worker_unreachable", "Connection refused"),
    "resets": (Resets, "worker_broken", "reset"),
    "closes": (lambda: AnswersAndCloses(b""), "worker_broken", "closed"),
    "garbage": (lambda: Answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "worker_broken", "response"),
    "half a head": (lambda: AnswersAndCloses(b"HTTP/1.1 200 OK\r\nContent-Le"), "worker_broken", "closed"),
    "half a body": (lambda: AnswersAndCloses(whole_chat()[:-9]), "worker_broken", "closed"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a42_a_broken_worker_is_told_with_its_cause(how, worker, route):
    """Law: whatever a worker breaks the client gets 502 as JSON with a stable code, and the log has the cause."""
    broken, code, cause = BROKEN[how]
    router = route(broken() if broken is refusing_url else worker(broken))
    answer = ask(router.listen, "/v1/chat/completions", CHAT)
    assert (answer.status, answer.error["code"]) == (502, code)
    wait_until(router.final_lines, "it has its final line")
    line, = router.final_lines()
    assert (line["outcome"], line["status"]) == ("upstream_error", "502")
    assert cause.lower() in line["reason"].lower()


def test_a43_statuses_say_what_is_wrong(worker, route):
    """Law: nobody ready is 503 with Retry-After, a broken worker 502, a late one 504."""
    none_ready = route(refusing_url(), health={"interval_ms": 20, "unhealthy_after": 1})
    answer = ask(none_ready.listen, "/v1/chat/completions", CHAT)
    assert (answer.status, answer.error["code"]) == (503, "no_worker_ready")
    assert int(answer.headers["retry-after"]) >= 1
    broken = route(worker(Resets))
    assert ask(broken.listen, "/v1/chat/completions", CHAT).status == 502
    late = route(worker(Silent), timeouts={"first_byte_ms": 50})
    answer = ask(late.listen, "/v1/chat/completions", CHAT)
    assert (answer.status, answer.error["code"]) == (504, "worker_timeout")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"])
def test_a44_errors_are_objects_of_the_api(path, worker, route):
    """Law: every error of the router is an object with message, type, param and code, as clients of the API read it."""
    router = route(worker(Resets))
    body = {**CHAT, "prompt": "hi", "input": "hi"}
    answer = ask(router.listen, path, body)
    assert answer.status == 502
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.error.keys() == {"message", "type", "param", "code"}
    assert answer.error["message"] and answer.error["type"] == "server_error"


SLOPE_BYTES = 16 * 1024


@pytest.mark.timeout(240)
@pytest.mark.parametrize("streams", [9_000, 40_000])
def test_a45_many_idle_streams(streams, emulated):
    """Law: very many streams that stand still are all held, each for little memory, and all of it is given back."""
    descriptors = 2 * streams + 500  # of the router; this process and the engines have half as many
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < descriptors:
        pytest.skip(f"the limit of descriptors is {hard}, {streams} streams take {descriptors}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    _, router = emulated(ranks=4, slots=streams, fixed_ms=20)
    body = {**STREAM, "model": "emulated", "messages": [{"role": "user", "content": "x" * 1024}],
            "emulator": {"prompt_tokens": 300, "output_tokens": 100_000}}
    clients, resident = [], {}
    while len(clients) < streams:
        more = [RawClient(router.listen, source=f"127.0.0.{2 + len(clients) // 20_000}")
                .post("/v1/chat/completions", body, X_Emulator_Fault="stall:1") for _ in range(500)]
        for client in more:
            client.read_until(b"data:")
        clients += more
        resident[len(clients)] = router.resident_bytes()
    assert router.ledger()["leases_live"] == streams
    slope = (resident[streams] - resident[1000]) / (streams - 1000)
    print(f"{slope / 1024:.1f} KiB a stream, {resident[streams] / 2**20:.0f} MiB in all")
    assert slope <= SLOPE_BYTES
    for client in clients:
        client.leave()
    wait_until(router.is_empty, "no lease is left", 30)


def test_a47_ipv6_on_both_sides(worker, route):
    """Law: workers and clients may have IPv6 addresses, and an address is another one than its name."""
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    six, four = worker(RawWorker, host="::1"), worker(RawWorker)
    named = f"http://localhost:{four.port}"
    router = route(six, four, named, listen="[::1]:0")
    assert router.listen.startswith("[::1]:")
    assert set(router.workers()) == {six.url, four.url, named}
    answers = [ask(router.listen, "/v1/chat/completions", CHAT).status for _ in range(12)]
    assert answers == [200] * 12
    assert six.received and b"Host: [::1]:" in six.received[0].head


def test_a49_a_deadline_is_the_end(worker, route):
    """Law: a request that is out of time is 504 once, with a hint to callers that they had better not repeat it."""
    silent = worker(Silent)
    router = route(silent, timeouts={"first_byte_ms": 100})
    answer = ask(router.listen, "/v1/chat/completions", CHAT)
    assert (answer.status, answer.error["code"]) == (504, "worker_timeout")
    assert answer.headers["x-should-retry"] == "false"
    assert len(silent.received) == 1


def test_a48_no_redirect_loses_a_key(worker, route):
    """Law: a slash at the end of a path is served, and the router never follows an engine's redirect."""
    elsewhere = worker(RawWorker)
    engine = worker(Answers, whole_chat(),
                    b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s/steal\r\nContent-Length: 0\r\n\r\n"
                    % elsewhere.url.encode())
    router = route(engine)
    served = ask(router.listen, "/v1/chat/completions/", CHAT, Authorization="Bearer secret")
    assert served.status == 200
    assert engine.received[0].target == "/v1/chat/completions"
    assert b"Bearer secret" in engine.received[0].head
    redirected = ask(router.listen, "/v1/chat/completions", CHAT, Authorization="Bearer secret")
    assert redirected.status == 502
    assert elsewhere.connections == 0


def status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}" % status


def answered_with(status: int, worker, route, **retries) -> int:
    """What the client gets where the first of two workers answers so."""
    router = route(worker(Answers, status_line(status)), worker(RawWorker), fleet={
        "barrier": False, "policy": {"name": "round_robin"}}, retries={"most": 1, **retries})
    return ask(router.listen, "/v1/chat/completions", CHAT).status


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 529])
def test_a50_statuses_after_which_another_worker_is_asked(status, worker, route):
    """Law: busy and broken engines are named by many statuses; after each of them another worker is asked."""
    assert answered_with(status, worker, route) == 200


def test_a50_which_statuses_those_are_is_a_setting(worker, route):
    """Law: a status that is not in the list is the client's, one that is put there is not."""
    assert answered_with(499, worker, route) == 499
    assert answered_with(499, worker, route, statuses=[499]) == 200
    assert answered_with(529, worker, route, statuses=[499]) == 529
