"""Prefill and decode on engines of their own, of which one fails its part: reports A15 to A26."""

import concurrent.futures
import json

import pytest

import fleets
from fleets import wait_until
from raw_clients import CHAT, STREAM, ask
from raw_workers import (DONE, END_OF_BODY, LAST, ROLE, STREAM_HEAD, Answers, Closes, PrefillsAs, RawWorker, Silent,
                         StallsAfter, chunk, refusing_url, token, usage_event, whole_chat)
from upstream import whole_answer

PROMPT = 8193
ROUND_ROBIN = {"policy": {"name": "round_robin"}, "barrier": False}


def with_prefill(dialect: str, *instances: RawWorker | str, **settings) -> dict:
    """Settings of a fleet of that dialect before these prefill instances."""
    urls = [instance if isinstance(instance, str) else instance.url for instance in instances]
    loss = {"on_prefill_loss": "503"} if dialect == "sglang" else {}
    listed = [{"url": url, "bootstrap_port": int(url.rsplit(":", 1)[1])} for url in urls]
    return {"dialect": dialect, "prefill": {"instances": listed, "retries": 0, **loss, **settings}}


def usage(cached: int, completion: int = 1, **details) -> dict:
    return {"prompt_tokens": PROMPT, "completion_tokens": completion, "total_tokens": PROMPT + completion,
            "prompt_tokens_details": {"cached_tokens": cached}, **details}


def prefill_failures(router) -> list[int]:
    return [instance["failures_in_a_row"] for instance in router.ledger()["prefill"]["instances"]]


REFUSES = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("dialect", ["sglang", "vllm_mooncake"])
@pytest.mark.parametrize("how", ["answers 500", "refuses"])
def test_a15_a_failed_prefill_ends_the_decode_leg(how, dialect, worker, route):
    """Law: where prefill fails while the decode engine waits for it that leg is closed at once, and the client is told."""

    class Prefill(Answers):
        def page(self, request):  # what dialect vllm_mooncake asks first
            return whole_answer(b'{"0":{"engine_id":"e"}}')[0]

    prefill = refusing_url() if how == "refuses" else worker(Prefill, REFUSES)
    decode = worker(Silent)
    router = route(decode, fleet=with_prefill(dialect, prefill, on_prefill_loss="503"))
    answer = ask(router.listen, "/v1/chat/completions", STREAM)
    assert answer.status in (502, 503) and answer.error["code"]
    for _ in decode.received:
        decode.left.get(timeout=5)
    wait_until(lambda: router.ledger()["leases_live"] == 0, "no lease is left")


def test_a16_a_decode_engine_that_never_begins_is_the_one_charged(worker, route):
    """Law: when prefill succeeded and the decode worker is silent the request ends in time, and the worker is charged."""
    prefill, decode = worker(PrefillsAs, 3, 0), worker(Silent)
    router = route(decode, fleet=with_prefill("vllm_nixl", prefill), timeouts={"first_byte_ms": 150})
    answer = ask(router.listen, "/v1/chat/completions", STREAM)
    assert (answer.status, answer.error["code"]) == (504, "worker_timeout")
    decode.left.get(timeout=5)
    wait_until(lambda: router.workers()[decode.url]["last_fault"], "the decode worker is charged")
    assert prefill_failures(router) == [0]


def test_a17_a_transfer_that_stalls_ends_and_the_worker_is_suspect(worker, route):
    """Law: a decode worker that begins and stalls is given up in time, and held back when it does so again and again."""
    prefill, stalled = worker(PrefillsAs, 3, 0), worker(StallsAfter, ROLE, token("t"))
    router = route(stalled, worker(RawWorker), fleet={**with_prefill("vllm_nixl", prefill), **ROUND_ROBIN},
                   timeouts={"stream_idle_ms": 50}, health={"interval_ms": 0, "hold_after": 2})
    answers = [ask(router.listen, "/v1/chat/completions", STREAM) for _ in range(4)]
    assert ["error" in answer.chunks[-1] for answer in answers].count(True) == 2
    stalled.left.get(timeout=5), stalled.left.get(timeout=5)
    wait_until(lambda: router.workers()[stalled.url]["health"] == "held", "it is held back")
    assert not router.workers()[stalled.url]["takes_requests"]
    assert prefill_failures(router) == [0]


SILENT_ENDS = {
    "closes at once": lambda: Closes(),
    "200 and nothing": lambda: Answers(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    "an empty stream": lambda: Answers(STREAM_HEAD + END_OF_BODY),
}


@pytest.mark.parametrize("how", SILENT_ENDS)
def test_a18_no_failure_is_an_empty_success(how, worker, route):
    """Law: a decode worker that gives nothing is 502 in JSON, never 200 with an empty body."""
    decode = worker(SILENT_ENDS[how])
    router = route(decode, fleet=with_prefill("vllm_nixl", worker(PrefillsAs, 3, 0)))
    for body in (CHAT, STREAM):
        answer = ask(router.listen, "/v1/chat/completions", body)
        assert (answer.status, answer.error["code"]) == (502, "worker_broken")


def test_a20_cached_tokens_are_the_prefill_engines(worker, route):
    """Law: cached tokens are those of the engine that computed the prompt; nothing else of the answer changes."""
    prefill = worker(PrefillsAs, PROMPT, 6144)
    answer = whole_chat("text", usage=usage(8192))
    decode = worker(Answers, answer)
    router = route(decode, fleet=with_prefill("vllm_nixl", prefill))
    received = ask(router.listen, "/v1/chat/completions", CHAT)
    assert received.json()["usage"]["prompt_tokens_details"] == {"cached_tokens": 6144}
    assert received.body == answer.partition(b"\r\n\r\n")[2].replace(b'"cached_tokens": 8192', b'"cached_tokens": 6144')


def test_a21_usage_survives_an_answer_that_is_gone_on_with(worker, route):
    """Law: an answer that one worker gives up and another ends has one usage, of all of it."""
    prefill = worker(PrefillsAs, PROMPT, 6144)
    given_up = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"c"},"finish_reason":"stop",' \
               b'"stop_reason":"recomputed"}]}\n\n'
    first = [ROLE, token("a"), token("b"), given_up, usage_event(**usage(8192, 3)), DONE]
    second = [ROLE, token("d"), LAST, usage_event(**{**usage(8195, 1), "prompt_tokens": PROMPT + 3}), DONE]
    decode = worker(Answers, *(STREAM_HEAD + b"".join(map(chunk, events)) + END_OF_BODY for events in (first, second)))
    router = route(decode, fleet=with_prefill("ascend_mooncake", prefill))
    body = {**STREAM, "stream_options": {"include_usage": True}}
    received = ask(router.listen, "/v1/chat/completions", body)
    assert received.text == "abcd"
    told = [event["usage"] for event in received.chunks if event.get("usage")]
    assert [(one["prompt_tokens"], one["completion_tokens"]) for one in told] == [(PROMPT, 4)]
    assert told[0]["prompt_tokens_details"]["cached_tokens"] == 6144
    wait_until(router.is_empty, "nothing is left")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a22_unknown_members_of_usage_survive(stream, worker, route):
    """Law: where usage is rewritten its other members stay, reasoning tokens among them."""
    prefill = worker(PrefillsAs, PROMPT, 7)
    told = usage(8192, 9, completion_tokens_details={"reasoning_tokens": 5}, made_up=[1.0])
    events = [ROLE, token("hi"), LAST, usage_event(**told), DONE]
    decode = worker(Answers, STREAM_HEAD + b"".join(map(chunk, events)) + END_OF_BODY if stream
                    else whole_chat(usage=told))
    router = route(decode, fleet=with_prefill("vllm_nixl", prefill))
    body = {**STREAM, "stream_options": {"include_usage": True}} if stream else CHAT
    received = ask(router.listen, "/v1/chat/completions", body)
    answer = received.chunks[-1] if stream else received.json()
    assert answer["usage"] == {**told, "prompt_tokens_details": {"cached_tokens": 7}}


@pytest.mark.parametrize("dialect", fleets.DIALECTS)
def test_a23_one_reading_of_settings(dialect, run, route, worker, tmp_path):
    """Law: what `config show` prints for a way of prefill and decode is what a router of that file has in effect."""
    decode = worker(Silent)
    fleet = {} if dialect == "aggregated" else with_prefill(dialect, worker(Silent))
    router = route(decode, fleet=fleet)
    settings = json.loads(fleets.fetch(f"{router.admin}/config"))["settings"]
    path = router.process.command[-1]
    shown = run("config", "show", "--config", path)
    assert shown.returncode == 0, shown.stderr
    again = tmp_path / "shown.yaml"
    again.write_text(shown.stdout)
    second = run("config", "show", "--config", again)
    values = {name: setting["value"] for name, setting in settings.items()}
    assert values["fleets[0].dialect"] == dialect
    assert strip_origins(second.stdout) == strip_origins(shown.stdout)
    for name, value in values.items():
        if value and name.startswith("fleets[0].prefill."):
            assert value.strip('"') in shown.stdout, name


def strip_origins(shown: str) -> list[str]:
    return [line.partition(" # ")[0].rstrip() for line in shown.splitlines()]


@pytest.mark.parametrize("dialect", ["vllm_nixl", "sglang"])
def test_a24_a_prefill_engine_that_aborts_fails_its_request_alone(dialect, worker, route):
    """Law: a prefill engine that aborts one of many connections costs that one request; the router goes on."""

    class Prefill(RawWorker):
        def answer(self, wire, request):
            if b"poison" in request.body:
                return wire.reset()
            wire.send(whole_chat("", kv_transfer_params={"do_remote_prefill": True}))

    class Decode(RawWorker):
        def answer(self, wire, request):
            if b"poison" in request.body:
                return self.has_left(wire)  # it waits for KV that never comes
            super().answer(wire, request)

    fleet = with_prefill(dialect, worker(Prefill), on_prefill_loss="503")
    router = route(worker(Decode), slots=32, fleet=fleet)
    bodies = [{"model": "m", "prompt": "poison" if number == 7 else "good"} for number in range(16)]
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(lambda body: ask(router.listen, "/v1/completions", body), bodies))
    assert [answer.status for number, answer in enumerate(answers) if number != 7] == [200] * 15
    assert answers[7].status in (502, 503) and answers[7].error["code"]
    assert router.process.is_running()
    wait_until(lambda: router.ledger()["leases_live"] == 0, "no lease is left")


@pytest.mark.parametrize("dialect", ["aggregated", "vllm_nixl"])
def test_a25_engines_are_spoken_to_in_http_1(dialect, worker, route):
    """Law: what reaches an engine is HTTP/1.1 without a wish for another protocol, whatever the client proposed."""
    decode, prefill = worker(RawWorker), worker(PrefillsAs, 3, 0)
    router = route(decode, fleet={} if dialect == "aggregated" else with_prefill(dialect, prefill))
    answer = ask(router.listen, "/v1/chat/completions", CHAT, Upgrade="h2c", HTTP2_Settings="AAMAAABkAAQAAP__",
                 Connection="close, Upgrade, HTTP2-Settings")
    assert answer.status in (200, 400)
    assert ask(router.listen, "/v1/chat/completions", CHAT).status == 200
    heads = [request.head for request in decode.received + prefill.received]
    assert heads
    for head in heads:
        assert head.split(b"\r\n")[0] == b"POST /v1/chat/completions HTTP/1.1"
        assert b"upgrade" not in head.lower() and b"http2-settings" not in head.lower()


@pytest.mark.parametrize("dialect", fleets.DIALECTS)
@pytest.mark.parametrize("prompt", ["hello", ["one", "two"], [11, 12, 13]], ids=["text", "list", "token-ids"])
def test_a26_every_shape_of_a_prompt(prompt, dialect, targets):
    """Law: a text, a list of texts and a list of token ids are answered in every way of prefill and decode."""
    target = targets(dialect)
    body = {"model": target.model, "prompt": prompt, "max_tokens": 3}
    answer = ask(target.url.removeprefix("http://"), "/v1/completions", body)
    assert answer.status == 200, answer
    assert len(answer.json()["choices"]) == (2 if prompt == ["one", "two"] else 1)
    assert all(choice["text"] for choice in answer.json()["choices"])
    wait_until(target.is_empty, "nothing is left")
