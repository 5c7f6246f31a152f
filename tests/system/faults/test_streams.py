"""Streams and bodies, which reach the other side as they were sent: reports A27 to A37."""

import concurrent.futures
import json
import random

import pytest

from fleets import wait_until
from raw_clients import CHAT, STREAM, RawClient, ask
from raw_workers import (DONE, END_OF_BODY, ERROR, LAST, ROLE, BreaksAfter, RawWorker, SendsPieces,
                         WaitsForAcknowledgement, chunk, token, usage_event)

ROUND_ROBIN = {"policy": {"name": "round_robin"}, "barrier": False}
UNKNOWN = (b'{"model":"m","messages":[{"role":"user","content":"hi","name":null}],"return_token_ids":true,'
           b'"chat_template_kwargs":{"enable_thinking":false,"a":{"a":[1,1.0,1e0]}},"big":18446744073709551616,'
           b'"float":1.0,"int":1,"minus":-0.0,"exp":1E+2,"deep":[[[[{"x":{}}]]]],"u":"\\u00e9\\ud83d\\ude00","e":"",'
           b'"nan":"NaN","mm_processor_kwargs":{"x":null},"repetition_penalty":1.10,"top_k":-1,"min_p":0.0,'
           b'"guided_json":{"type":"object"},"priority":0,"logit_bias":{"5":-100},"a":1,"a":2,"tools":[], "z" : true }')


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["lf", "crlf"])
def test_a27_an_event_may_be_cut_at_every_byte(ending, worker, route):
    """Law: wherever the network cuts a stream the client gets the same bytes, and its tokens are counted."""
    events = b"".join([ROLE, token("data: x"), token("é"), LAST, DONE]).replace(b"\n\n", 2 * ending)
    cutting = worker(SendsPieces, lambda body: [events[:body["cut"]], events[body["cut"]:]])
    router = route(cutting, slots=64)
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda cut: ask(router.listen, "/v1/chat/completions", {**STREAM, "cut": cut}),
                                   range(len(events) + 1)))
    assert all(answer.body == events and answer.whole for answer in answers)
    wait_until(lambda: len(router.final_lines()) == len(answers), "each has its final line")
    assert {(line["outcome"], line["output_tokens"]) for line in router.final_lines()} == {("ok", "2")}


def test_a28_events_and_writes_need_not_fit(worker, route):
    """Law: two and a half events in a write are two events now and one with the next write."""
    events = b"".join([ROLE, *(token(f"t{number}") for number in range(40)), LAST, DONE])
    length = 2 * len(token("t00")) + len(token("t00")) // 2
    cutting = worker(SendsPieces, lambda body: [events[at:at + length] for at in range(0, len(events), length)])
    router = route(cutting)
    assert ask(router.listen, "/v1/chat/completions", STREAM).body == events
    wait_until(router.final_lines, "it has its final line")
    assert router.final_lines()[0]["output_tokens"] == "40"


def test_a29_streams_do_not_mix(worker, route):
    """Law: of many streams at once each client gets the events of its own, in order, however they were written."""

    def pieces(body: dict) -> list[bytes]:
        chance = random.Random(body["number"])
        events = b"".join([ROLE, *(token(f"{body['number']}-{i} ") for i in range(50)), LAST, DONE])
        cuts = sorted(chance.sample(range(1, len(events)), 60))
        return [events[one:other] for one, other in zip([0, *cuts], [*cuts, len(events)])]

    router = route(worker(SendsPieces, pieces), slots=64)
    with concurrent.futures.ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(lambda number: ask(router.listen, "/v1/chat/completions", {**STREAM, "number": number}),
                                   range(64)))
    assert [answer.text for answer in answers] == ["".join(f"{number}-{i} " for i in range(50)) for number in range(64)]


def test_a30_every_event_is_passed_on_at_once(worker, route):
    """Law: an event reaches the client before the worker has sent the next one."""
    waiting = worker(WaitsForAcknowledgement, 30)
    router = route(waiting)
    with RawClient(router.listen).post("/v1/chat/completions", STREAM) as client:
        for number in range(30):
            client.read_until(f't{number}"'.encode())
            waiting.acknowledged.release()
        client.read_until(b"[DONE]")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/embeddings"])
def test_a31_unknown_members_pass_to_the_byte(path, worker, route):
    """Law: what the router need not change reaches the worker as it was written, members that it never heard of too."""
    engine = worker(RawWorker)
    router = route(engine)
    body = UNKNOWN if path.endswith("chat/completions") else UNKNOWN.replace(b'"messages"', b'"input"')
    assert ask(router.listen, path, body).status == 200
    assert engine.received[0].body == body


def test_a32_an_alias_changes_one_value(worker, route):
    """Law: where the model has another name at the engine only that name changes."""
    engine = worker(RawWorker)
    router = route(engine, fleet={"models": [{"name": "m", "aliases": ["gpt-x"]}]})
    assert ask(router.listen, "/v1/chat/completions", UNKNOWN.replace(b'"model":"m"', b'"model" : "gpt-x"')).status == 200
    assert engine.received[0].body == UNKNOWN.replace(b'"model":"m"', b'"model" : "m"')


def test_a33_a_role_is_no_beginning(worker, route):
    """Law: when every worker fails before it has said anything the client has 502 in JSON, not a 200 that breaks."""
    one, other = worker(BreaksAfter, ROLE), worker(BreaksAfter, ROLE, ERROR)
    router = route(one, other, fleet=ROUND_ROBIN, retries={"most": 1})
    answer = ask(router.listen, "/v1/chat/completions", STREAM)
    assert (answer.status, answer.error["code"]) == (502, "worker_broken")
    assert [len(worker.received) for worker in (one, other)] == [1, 1]


def test_a34_an_error_in_the_place_of_a_beginning_is_a_failure(worker, route):
    """Law: a stream that begins with an error counts against its worker, and another worker is asked."""
    failing, good = worker(SendsPieces, lambda body: [ERROR, DONE]), worker(RawWorker)
    router = route(failing, good, fleet=ROUND_ROBIN, retries={"most": 1})
    answers = [ask(router.listen, "/v1/chat/completions", STREAM) for _ in range(4)]
    assert all(answer.status == 200 and answer.whole and answer.text == "hi" for answer in answers)
    assert failing.received
    assert "out of memory" in router.workers()[failing.url]["last_fault"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a35_usage_is_never_in_a_shape_of_the_routers_own(path, worker, route):
    """Law: the router asks engines for usage and writes no usage event: the client gets the engine's own, or none."""
    told = usage_event(prompt_tokens=3, completion_tokens=1, total_tokens=4)
    events = [ROLE, token("hi"), LAST, told, DONE]
    engine = worker(SendsPieces, lambda body: events)
    router = route(engine)
    body = {**STREAM, "prompt": "hi"} if path == "/v1/completions" else STREAM
    unasked = ask(router.listen, path, body)
    assert json.loads(engine.received[0].body)["stream_options"] == {"include_usage": True}
    assert unasked.body == b"".join(event for event in events if event != told)
    asked = ask(router.listen, path, {**body, "stream_options": {"include_usage": True}})
    assert asked.body == b"".join(events)


def test_a37_a_stream_that_opens_and_breaks_is_no_success(worker, route):
    """Law: a breaker judges a stream by its end: a worker whose streams open and break is held back."""
    breaking = worker(BreaksAfter, ROLE, token("t"))
    router = route(breaking, worker(RawWorker), fleet=ROUND_ROBIN,
                   health={"interval_ms": 0, "hold_after": 3, "hold_ms": 60_000})
    answers = [ask(router.listen, "/v1/chat/completions", STREAM) for _ in range(12)]
    assert len(breaking.received) == 3
    assert router.workers()[breaking.url]["health"] == "held"
    assert sum(answer.whole for answer in answers) == 9


LIMIT = 100_000


def sized(length: int) -> bytes:
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}'
    return body % (b"x" * (length - len(body) + 2))


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a36_bodies_have_a_limit_that_can_be_set(framing, worker, route):
    """Law: a body of the limit passes, one byte more is 413 in JSON, sent before all of the body was read."""
    engine = worker(RawWorker)
    router = route(engine, limits={"body_bytes": LIMIT})

    def post(body: bytes):
        if framing == "length":
            return RawClient(router.listen).post("/v1/chat/completions", body)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        return RawClient(router.listen).send(head, *(chunk(body[at:at + 9999]) for at in range(0, len(body), 9999)),
                                             END_OF_BODY)

    for length in (LIMIT - 1, LIMIT):
        assert post(sized(length)).answer().status == 200
        assert engine.received[-1].body == sized(length)
    answer = post(sized(LIMIT + 1)).answer()
    assert (answer.status, answer.error["code"]) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"
    assert len(engine.received) == 2
    with RawClient(router.listen) as early:
        early.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % (LIMIT + 1))
        early.read_until(b"body_too_large")  # not one byte of the body was sent
