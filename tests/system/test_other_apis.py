"""What is served beside chats and texts: responses, messages, embeddings, scores, tokens; directly and through the router.

Responses and messages run as one leg in every dialect; the rest goes to an engine without a slot.
"""

import contextlib
import json
import subprocess

import openai
import pytest

import fleets
from scenarios import lengths, normalised, words


@contextlib.contextmanager
def sdk_of(target):
    with openai.OpenAI(base_url=f"{target.url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        yield client
    fleets.wait_until(target.is_empty, "nothing is left of an answer that was read to its end")


def post(target: fleets.Target, path: str, body: dict) -> tuple[int, str]:
    """Status and text of the answer, by curl."""
    printed = subprocess.run(["curl", "-sS", "--no-buffer", "--max-time", "20", "-w", "\n%{http_code}", "-H",
                              "Content-Type: application/json", "-d", json.dumps(body), f"{target.url}{path}"],
                             capture_output=True, text=True, check=True).stdout
    text, _, status = printed.rpartition("\n")
    return int(status), text


def own(output: int, **more: int) -> dict:
    return {"extra_body": {"emulator": lengths(output, **more)}}


def test_responses_whole(target_that_decodes_alone):
    target = target_that_decodes_alone
    with sdk_of(target) as sdk:
        answer = sdk.responses.create(model=target.model, input="hello", **own(5, reasoning_tokens=2))
    assert answer.status == "completed"
    assert answer.output_text == words(3, 5)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (100, 5)


def test_responses_stream(target_that_decodes_alone):
    """Law: every event comes, in order, and text and usage are those of the whole."""
    target = target_that_decodes_alone
    with sdk_of(target) as sdk, sdk.responses.create(model=target.model, input="hello", stream=True, **own(5)) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == words(1, 5)
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.output_tokens == 5


def test_responses_are_not_stored(targets):
    """Law: the router refuses what another engine could not go on with."""
    for dialect in fleets.DIALECTS:
        target = targets(dialect)
        for member, value in {"store": True, "background": True, "previous_response_id": "resp_1"}.items():
            status, text = post(target, "/v1/responses", {"model": target.model, "input": "x", member: value})
            assert status == 400
            assert json.loads(text)["error"]["param"] == member
        with pytest.raises(Exception, match="404"):
            fleets.fetch(f"{target.url}/v1/responses/resp_1")


def test_cancelled_response_leaves_nothing(target_that_decodes_alone):
    target = target_that_decodes_alone
    with sdk_of(target) as sdk:
        stream = sdk.responses.create(model=target.model, input="hello", stream=True, **own(100_000))
        next(iter(stream))
        stream.close()


def test_what_decode_engines_cannot_serve_alone_is_refused(targets):
    """Law: where the dialect has no words for a request the client hears it at once, in the shape of its API."""
    target = targets("sglang")
    status, text = post(target, "/v1/responses", {"model": target.model, "input": "hello"})
    error = json.loads(text)["error"]
    assert (status, error["code"]) == (400, "refused_by_dialect")
    assert "dialect sglang serves chat and text completions only" in error["message"]
    status, text = post(target, "/v1/messages", messages(target.model))
    answer = json.loads(text)
    assert (status, answer["type"]) == (400, "error")
    assert "dialect sglang" in answer["error"]["message"]
    assert target.state()["holds_nothing"]


def messages(model: str, **more) -> dict:
    return {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}], **more}


def test_messages_whole(target_that_decodes_alone):
    target = target_that_decodes_alone
    status, text = post(target, "/v1/messages", messages(target.model, emulator=lengths(5)))
    answer = json.loads(text)
    assert status == 200
    assert answer["content"] == [{"type": "text", "text": words(1, 5)}]
    assert answer["usage"] == {"input_tokens": 100, "output_tokens": 5}
    fleets.wait_until(target.is_empty, "nothing is left of a whole answer")


def test_messages_stream(target_that_decodes_alone):
    target = target_that_decodes_alone
    status, text = post(target, "/v1/messages", messages(target.model, stream=True, emulator=lengths(5)))
    assert status == 200
    blocks = text.removesuffix("\n\n").split("\n\n")
    names = [block.split("\n")[0].removeprefix("event: ") for block in blocks]
    assert names == ["message_start", "content_block_start", *5 * ["content_block_delta"], "content_block_stop",
                     "message_delta", "message_stop"]
    deltas = [json.loads(block.split("data: ", 1)[1]) for block in blocks[2:7]]
    assert "".join(delta["delta"]["text"] for delta in deltas) == words(1, 5)
    fleets.wait_until(target.is_empty, "nothing is left of a stream that was read to its end")


@pytest.mark.parametrize("wrong", [{"model": "another"}, {"messages": "hello"}], ids=["model", "messages"])
def test_messages_fail_in_their_own_shape(target_that_decodes_alone, wrong):
    target = target_that_decodes_alone
    status, text = post(target, "/v1/messages", {**messages(target.model), **wrong})
    assert status == (404 if "model" in wrong else 400)
    answer = json.loads(text)
    assert answer["type"] == "error"
    assert answer["error"]["message"]


def test_embeddings(target):
    """Law: embeddings are the engine's, in the packed encoding that the SDK asks for by itself too."""
    with sdk_of(target) as sdk:
        plain = sdk.embeddings.create(model=target.model, input=["one", "two"], encoding_format="float")
        packed = sdk.embeddings.create(model=target.model, input=["one", "two"])
    assert [entry.embedding for entry in plain.data] == [entry.embedding for entry in packed.data]
    assert plain.data[0].embedding != plain.data[1].embedding


ASIDE = {
    "/rerank": {"query": "q", "documents": ["a", "b", "c"], "top_n": 2},
    "/v1/rerank": {"query": "q", "documents": ["a", "b"]},
    "/score": {"text_1": "q", "text_2": ["a", "b"]},
    "/v1/score": {"text_1": "q", "text_2": ["a", "b"]},
    "/classify": {"input": ["a", "b"]},
    "/tokenize": {"prompt": "hello world"},
    "/detokenize": {"tokens": [1_000_001, 1_000_002]},
}


@pytest.mark.parametrize("path", ASIDE)
def test_what_needs_no_slot(target, targets, path):
    """Law: the client has what the engine says, with the model named or not."""
    status, text = post(target, path, {"model": target.model, **ASIDE[path]})
    assert status == 200, text
    direct = targets(fleets.DIRECT)
    reference = json.loads(post(direct, path, ASIDE[path])[1])
    assert normalised(json.loads(text)) == normalised(reference)


def test_version_is_the_engines(target):
    assert json.loads(fleets.fetch(f"{target.url}/version"))["version"].endswith("emulator")


@pytest.mark.parametrize("path", ["/emulator/stats", "/abort_requests", "/sleep", "/v1/load_lora_adapter", "/pause"])
def test_engines_are_controlled_by_nobody(targets, path):
    """Law: what is not on the router's list never reaches an engine."""
    for dialect in fleets.DIALECTS:
        assert post(targets(dialect), path, {})[0] == 404


def test_adapters_are_models(start_emulator, start_router):
    """Law: adapters are listed with their parent and asked for by their own name."""
    engines = start_emulator(ranks=1, slots=2)
    router = start_router({"fleets": [{
        "models": [{"name": engines.ready["model"], "aliases": ["alias"], "adapters": ["tuned"]}],
        "groups": [{"name": "g", "slots": 2, "workers": [{"url": engines.ready["groups"][0][0]}]}]}]})
    url = f"http://{router.ready['listen']}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
        listed = {model.id: getattr(model, "parent", None) for model in sdk.models.list()}
        assert listed == {engines.ready["model"]: None, "alias": None, "tuned": engines.ready["model"]}
        sdk.completions.create(model="alias", prompt="x", max_tokens=1)
        with pytest.raises(openai.NotFoundError, match="`tuned` does not exist"):  # the emulator has no adapters
            sdk.completions.create(model="tuned", prompt="x", max_tokens=1)
