"""The router in front of an engine of other authors: xpyd-sim, an emulator of OpenAI's and vLLM's APIs.

It has no part in handing KV over: its prefill engines answer as any other, so that decode engines prefill by themselves.
Its texts depend on their lengths only. `make test-engines` installs it; docs/compatibility.md says what was seen.
"""

import concurrent.futures
import contextlib
import json
import pathlib
import re
import subprocess
import time

import openai
import pytest

import fleets
from scenarios import HELLO, normalised

ENGINE = pathlib.Path(__file__).resolve().parents[2] / "build/engines/bin/xpyd-sim"
START_SECONDS = 30
if not ENGINE.exists():
    pytest.skip("no engine of other authors is installed; `make test-engines` does that", allow_module_level=True)

CHAT = {"model": "sim", "messages": HELLO, "extra_body": {"ignore_eos": True}}
TEXT = {"model": "sim", "prompt": "once upon", "extra_body": {"ignore_eos": True}}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
REQUESTS = {
    "chat": ("chat", {**CHAT, "max_tokens": 8}),
    "chat_n2": ("chat", {**CHAT, "max_tokens": 8, "n": 2}),
    "chat_stream": ("chat", {**CHAT, "max_tokens": 8, **STREAM}),
    "chat_stream_no_usage": ("chat", {**CHAT, "max_tokens": 8, "stream": True}),
    "chat_stream_n2": ("chat", {**CHAT, "max_tokens": 8, "n": 2, **STREAM}),
    "text": ("text", {**TEXT, "max_tokens": 8}),
    "text_one_token": ("text", {**TEXT, "max_tokens": 1}),
    "text_token_ids": ("text", {**TEXT, "prompt": [1, 2, 3], "max_tokens": 4}),
    "text_stream": ("text", {**TEXT, "max_tokens": 8, **STREAM}),
    "text_stream_one_token": ("text", {**TEXT, "max_tokens": 1, **STREAM}),
    "refused": ("chat", {**CHAT, "temperature": 9}),
}


@contextlib.contextmanager
def running(mode: str, log: pathlib.Path):
    """Its address, once it listens; ended by SIGTERM."""
    flags = {"mode": mode, "port": 0, "host": "127.0.0.1", "model": "sim", "prefill-delay-ms": 2,
             "decode-delay-per-token-ms": 1}
    command = [ENGINE, "serve", *(word for name, value in flags.items() for word in (f"--{name}", str(value)))]
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        began = time.monotonic()
        while not (found := re.search(r"running on (http://127\.0\.0\.1:\d+)", log.read_text())):
            assert child.poll() is None and time.monotonic() - began < START_SECONDS, log.read_text()
            time.sleep(0.02)
        yield found[1]
    finally:
        child.terminate()
        child.wait(START_SECONDS)


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """By mode: addresses."""
    logs = tmp_path_factory.mktemp("engines")
    with contextlib.ExitStack() as stack:
        yield {mode: [stack.enter_context(running(mode, logs / f"{mode}-{number}.log")) for number in range(count)]
               for mode, count in {"dual": 2, "prefill": 1, "decode": 1}.items()}


@pytest.fixture(params=["aggregated", "vllm_nixl"])
def router(request, engines, start_router):
    workers = engines["dual" if request.param == "aggregated" else "decode"]
    fleet = {"dialect": request.param, "barrier": False,
             "groups": [{"name": "g", "slots": 8, "workers": [{"url": url} for url in workers]}]}
    if request.param != "aggregated":
        fleet["prefill"] = {"instances": [{"url": url} for url in engines["prefill"]]}
    return start_router({"fleets": [fleet]})


def sdk_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=20)


def made_of(sdk: openai.OpenAI, api: str, members: dict) -> object:
    """What the SDK makes of the answer, without ids and times."""
    create = {"chat": sdk.chat.completions, "text": sdk.completions}[api].create
    try:
        answer = create(**members)
        if isinstance(answer, openai.Stream):
            return [normalised(event.to_dict()) for event in answer]
        return normalised(answer.to_dict())
    except openai.APIStatusError as refusal:
        return refusal.status_code, refusal.message


@pytest.fixture(scope="module")
def direct(engines):
    with sdk_of(engines["dual"][0]) as sdk:
        yield sdk


@pytest.fixture
def routed(router):
    with sdk_of(f"http://{router.ready['listen']}") as sdk:
        yield sdk


def is_drained(router) -> bool:
    ledger = json.loads(fleets.fetch(f"http://{router.ready['admin']}/debug/ledger"))["fleets"][0]
    return ledger["leases_live"] == ledger["requests_live"] == ledger["requests_waiting"] == 0


@pytest.mark.parametrize("name", REQUESTS)
def test_answers_are_the_engines(name, router, routed, direct):
    """Law: what a client makes of an answer does not depend on whether the router is between."""
    assert made_of(routed, *REQUESTS[name]) == made_of(direct, *REQUESTS[name])
    fleets.wait_until(lambda: is_drained(router), "nothing is left of an answer that was read to its end")


def test_many_at_once_are_whole(router, routed, direct):
    """Law: under more requests than slots every stream brings all of its tokens, by all workers, and no slot leaks."""
    members = {**TEXT, "max_tokens": 40, **STREAM}
    expected = made_of(direct, "text", members)
    with concurrent.futures.ThreadPoolExecutor(24) as clients:
        assert all(answer == expected for answer in clients.map(lambda _: made_of(routed, "text", members), range(48)))
    fleets.wait_until(lambda: is_drained(router), "no lease is left")


def test_client_that_leaves_leaves_nothing(router, routed):
    stream = routed.completions.create(**{**TEXT, "max_tokens": 5000, "stream": True})
    next(iter(stream))
    stream.close()
    fleets.wait_until(lambda: is_drained(router), "no lease is left")


@pytest.mark.parametrize("router", ["vllm_nixl"], indirect=True)
def test_prefill_engine_without_a_connector_is_counted(router, routed):
    """Law: where the prefill answer tells no KV the decode engine prefills, and the operator can see it."""
    made_of(routed, "text", {**TEXT, "max_tokens": 4})
    assert 'balanceroute_prefill_skipped_total{reason="no_kv"} 1' in fleets.fetch(
        f"http://{router.ready['admin']}/metrics")
