"""The same requests by OpenAI's Python and Node SDKs and by curl, to one engine directly and through the router.

Every client must make the same of every server's answers as curl makes of the engine's own.
"""

import functools
import subprocess

import openai
import pytest

import clients
import fleets
from scenarios import HELLO, SCENARIOS, Answer, Scenario, lengths, normalised

# What a dialect has no way to ask of its engines, which the router says at once (docs/dialects.md).
REFUSED_BY_DIALECT = {("sglang", scenario) for scenario in ("chat_n2", "chat_stream_n2", "text_n2", "text_list_n2")}
ENDLESS = {"messages": HELLO, "emulator": lengths(100_000)}


@pytest.fixture(scope="module")
def client_of(targets):
    """client_of("node", "aggregated"): a client that asks that server."""
    made = {}

    def of(client: str, target: str):
        if (client, target) not in made:
            made[client, target] = clients.CLIENTS[client](targets(target).url)
        return made[client, target]

    yield of
    for client in made.values():
        if isinstance(client, clients.NodeSdk):
            client.close()


@pytest.fixture(scope="module")
def reference(targets, client_of):
    """reference("chat"): what curl makes of the engine's own answer."""
    return functools.cache(lambda scenario: client_of("curl", fleets.DIRECT).run(
        SCENARIOS[scenario], targets(fleets.DIRECT).model))


def comparable(answer: Answer) -> tuple:
    """Words of a refusal may differ between router and engine; its status may not."""
    return (answer.status, normalised(answer.body), normalised(answer.events), answer.error is not None)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("client", clients.CLIENTS)
def test_every_client_has_the_engines_answer(client, scenario, target, client_of, reference):
    """Law: what a client makes of an answer depends neither on the client nor on whether a router is between."""
    asked = SCENARIOS[scenario]
    answer = client_of(client, target.name).run(asked, target.model)
    if (target.name, scenario) in REFUSED_BY_DIALECT:
        assert answer.status == 400
        assert "'n' and 'best_of': expected 1" in answer.error
        return
    assert answer.status == asked.status, answer
    assert asked.holds(answer), answer
    assert comparable(answer) == comparable(reference(scenario))
    fleets.wait_until(target.is_empty, "nothing is left of an answer that was read to its end")


def test_python_cancels_in_mid_stream(target, client_of):
    """Law: a client that leaves in mid-stream leaves nothing in any rank, nor in the ledger."""
    with openai.OpenAI(base_url=f"{target.url}/v1", api_key="none") as sdk:
        stream = sdk.chat.completions.create(model=target.model, messages=HELLO, stream=True,
                                             extra_body={"emulator": ENDLESS["emulator"]})
        next(iter(stream))
        assert target.runs_something()
        stream.close()
        fleets.wait_until(target.is_empty, "the rank is empty after the client left")


def test_node_cancels_in_mid_stream(target, client_of):
    body = {"model": target.model, "stream": True, **ENDLESS}
    answer = client_of("node", target.name).ask({"do": "cancel", "api": "chat", "body": body})
    assert len(answer["events"]) == 1
    fleets.wait_until(target.is_empty, "the rank is empty after the client left")


def test_curl_cancels_in_mid_stream(target, client_of):
    endless = Scenario("chat", {**ENDLESS, "stream": True}, holds=bool)
    child = subprocess.Popen(client_of("curl", target.name).command(endless, target.model), stdout=subprocess.PIPE)
    assert child.stdout.readline().startswith(b"data: ")
    assert target.runs_something()
    child.kill()
    child.wait()
    child.stdout.close()
    fleets.wait_until(target.is_empty, "the rank is empty after the client left")


def test_python_gives_up_waiting(target):
    """Law: a client whose patience ends before a whole answer comes leaves nothing behind."""
    with openai.OpenAI(base_url=f"{target.url}/v1", api_key="none", max_retries=0, timeout=0.4) as sdk:
        with pytest.raises(openai.APITimeoutError):
            sdk.chat.completions.create(model=target.model, messages=HELLO,
                                        extra_body={"emulator": ENDLESS["emulator"]})
    fleets.wait_until(target.is_empty, "the rank is empty after the client gave up")


def test_node_gives_up_waiting(target, client_of):
    body = {"model": target.model, **ENDLESS}
    answer = client_of("node", target.name).ask({"do": "time_out", "api": "chat", "body": body, "milliseconds": 400})
    assert answer["error"].startswith("APIConnectionTimeoutError")
    fleets.wait_until(target.is_empty, "the rank is empty after the client gave up")


def test_curl_gives_up_waiting(target, client_of):
    endless = Scenario("chat", ENDLESS, holds=bool)
    command = client_of("curl", target.name).command(endless, target.model, "--max-time", "0.4")
    assert subprocess.run(command, capture_output=True).returncode == 28  # operation timed out
    fleets.wait_until(target.is_empty, "the rank is empty after the client gave up")


def test_sdks_name_refusals_as_they_do_openais(target, client_of):
    """Law: a status becomes the exception that the SDKs' users catch."""
    with openai.OpenAI(base_url=f"{target.url}/v1", api_key="none", max_retries=0) as sdk:
        with pytest.raises(openai.NotFoundError, match="another"):
            sdk.chat.completions.create(model="another", messages=HELLO)
        with pytest.raises(openai.BadRequestError):
            sdk.completions.create(model=target.model, prompt=7)
    body = {"model": "another", "messages": HELLO}
    answer = client_of("node", target.name).ask({"do": "run", "api": "chat", "body": body})
    assert answer["status"] == 404
    assert answer["error"].startswith("NotFoundError")
