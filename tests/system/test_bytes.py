"""Byte truth, seen from outside: what the router changes of bodies and streams, and that it changes nothing else.

The engine is a recorder, the client a socket; what is random comes from fixed seeds.
"""

import json
import random
import re

import pytest

from upstream import RecordingEngine, ask, streamed_answer, whole_answer

SEEDS = range(40)
SPACES = ("", " ", "\t", "\n", "\r\n", "  \n ")
# Values that a program which reads and writes JSON again would change.
NUMBERS = ("0", "-0", "-0.0", "1.0", "1e3", "1E+3", "0.1000", "18446744073709551616", "-9223372036854775809",
           "3.141592653589793238462643383279502884", "1e400", "123456789012345678901234567890")
STRINGS = ('""', r'"\u0041\u00e9\ud83d\ude00"', r'"\/"', '"é😀"', r'"\b\f\n\r\t\"\\"', r'"\u0000"', '"</script>"',
           '"data: [DONE]"')
NAMES = ("temperature", "chat_template_kwargs", "x-custom", "stop", "logit_bias", "été", "nested", "metadata", "Model",
         "user", "guided_json", "extra_body", "seed", "max_tokens_")


class BodyWriter:
    """Random JSON text that says what a request must say, and much that the router has never heard of."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def space(self) -> str:
        return self.random.choice(SPACES)

    def value(self, depth: int = 0) -> str:
        kinds = ["number", "string", "word"] + ([] if depth > 2 else ["array", "object"])
        kind = self.random.choice(kinds)
        if kind == "number":
            return self.random.choice(NUMBERS)
        if kind == "string":
            return self.random.choice(STRINGS)
        if kind == "word":
            return self.random.choice(("true", "false", "null"))
        if kind == "array":
            inner = ",".join(self.space() + self.value(depth + 1) + self.space() for _ in range(self.random.randrange(4)))
            return "[" + (inner or self.space()) + "]"
        return self.object([(json.dumps(self.random.choice(NAMES)), self.value(depth + 1))
                            for _ in range(self.random.randrange(4))])

    def object(self, members: list[tuple[str, str]]) -> str:
        inner = ",".join(f"{self.space()}{name}{self.space()}:{self.space()}{value}{self.space()}"
                         for name, value in members)
        return "{" + (inner or self.space()) + "}"

    def request(self, model: str, stream: str) -> str:
        """A chat request; `stream` holds the text of members that concern streaming."""
        unknown = self.random.sample(NAMES, self.random.randrange(len(NAMES)))
        members = [(json.dumps(name, ensure_ascii=self.random.random() < 0.5), self.value()) for name in unknown]
        members += [(self.model_name(), json.dumps(model)), ('"messages"', self.messages())]
        members += [tuple(member.split(":", 1)) for member in stream.split(";") if member]
        self.random.shuffle(members)
        return self.space() + self.object(members) + self.space()

    def model_name(self) -> str:
        return self.random.choice(('"model"', r'"\u006dodel"'))

    def messages(self) -> str:
        return "[" + self.object([('"role"', '"user"'), ('"content"', self.random.choice(STRINGS))]) + "]"


@pytest.fixture
def engine():
    recorder = RecordingEngine()
    recorder.answers = [whole_answer(b'{"choices": []}')]
    yield recorder
    recorder.close()


@pytest.fixture
def router(engine, start_router):
    process = start_router({"fleets": [{
        "models": [{"name": "served", "aliases": ["alias"]}],
        "groups": [{"name": "g", "slots": 4, "workers": [{"url": engine.url}]}],
    }]})
    return process.ready["listen"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_body_without_reason_to_change_passes_to_the_byte(seed, engine, router):
    """Law: unknown members, spelling of numbers, escapes, order and spacing reach the engine as the client wrote them."""
    body = BodyWriter(seed).request("served", '"stream":false' if seed % 2 else "").encode()
    head, _ = ask(router, "/v1/chat/completions", body)
    assert head.startswith(b"HTTP/1.1 200"), head
    assert engine.received.get(timeout=5).body == body


@pytest.mark.parametrize("seed", SEEDS)
def test_an_alias_changes_the_models_name_only(seed, engine, router):
    """Law: with an alias the engine gets the same bytes but for the value of `model`."""
    body = BodyWriter(seed).request("alias", "").encode()
    ask(router, "/v1/chat/completions", body)
    name = re.compile(rb'("(?:m|\\u006d)odel"\s*:\s*)"alias"')
    assert len(name.findall(body)) == 1
    assert engine.received.get(timeout=5).body == name.sub(rb'\1"served"', body)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stream_that_does_not_ask_for_usage_changes_by_that_wish_only(seed, engine, router):
    """Law: without the spliced wish the engine's bytes are the client's; with an own wish for usage nothing changes."""
    engine.answers = [streamed_answer([b'data: {"choices":[]}\n\n', b"data: [DONE]\n\n"])]
    options = ("", ';"stream_options":{"include_usage":false}', ';"stream_options":{ }', ';"stream_options":null',
               ';"stream_options":{"x":1}', ';"stream_options":{"include_usage":true}')[seed % 6]
    body = BodyWriter(seed).request("served", '"stream":true' + options).encode()
    ask(router, "/v1/chat/completions", body)
    received = engine.received.get(timeout=5).body
    assert json.loads(received)["stream_options"]["include_usage"] is True
    before, after = common_ends(body, received)
    assert len(before) + len(after) >= len(body) - len(b"false"), (body, received)
    if options.endswith("true}"):
        assert received == body


def common_ends(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """The longest beginning that both have, and the longest end of what is left."""
    shorter = min(len(one), len(other))
    first = next((i for i in range(shorter) if one[i] != other[i]), shorter)
    last = next((i for i in range(shorter - first) if one[-1 - i] != other[-1 - i]), shorter - first)
    return one[:first], one[len(one) - last:]


def events_of(seed: int, ending: bytes) -> tuple[list[bytes], bytes]:
    """Events of a chat stream as some engine might write them, and the usage event that ends it."""
    chance = random.Random(seed)
    events = [b'data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}']
    for number in range(chance.randrange(1, 30)):
        text = chance.choice((rb" t\u0031", "é😀".encode(), rb"data: [DONE]\n\n", b"{}", b""))
        events.append(b'data:%s{"id":"x","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}],"n":1e0}'
                      % (chance.choice((b"", b" ")), text))
        if chance.random() < 0.2:
            events.append(b": keep-alive")
    events.append(b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    usage = b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12}}'
    return [event + ending for event in events], usage + ending


def cut(text: bytes, chance: random.Random) -> list[bytes]:
    """`text` in pieces, some of a byte; the cuts lie anywhere."""
    pieces = []
    while text:
        length = chance.choice((1, 1, 2, 3, 7, 20, 100, 1000))
        pieces.append(text[:length])
        text = text[length:]
    return pieces


@pytest.mark.parametrize("wants_usage", [False, True])
@pytest.mark.parametrize("ending", [b"\n\n", b"\r\n\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("seed", range(12))
def test_a_stream_cut_anywhere_reaches_the_client_unchanged(seed, ending, wants_usage, engine, router):
    """Law: the client gets the engine's bytes, but for the usage event that it did not ask for, however they were cut."""
    events, usage = events_of(seed, ending)
    done = b"data: [DONE]" + ending
    engine.answers = [streamed_answer(cut(b"".join([*events, usage, done]), random.Random(seed)))]
    options = ';"stream_options":{"include_usage":true}' if wants_usage else ""
    body = BodyWriter(seed).request("served", '"stream":true' + options).encode()
    head, received = ask(router, "/v1/chat/completions", body)
    assert head.startswith(b"HTTP/1.1 200"), head
    assert received == b"".join([*events, usage if wants_usage else b"", done])


def usage_with(cached: int) -> bytes:
    return (b'{"prompt_tokens": 12, "prompt_tokens_details" : {"audio_tokens":0, "cached_tokens":%d},'
            b' "completion_tokens":1e0}' % cached)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_engines_tell_one_another_stays_inside(stream, engine, start_router):
    """Law: of a prompt computed elsewhere the answer is the decode engine's to the byte, but for the cached tokens, which
    are the prefill engine's, and but for transfer parameters of its own."""
    prefill = RecordingEngine()
    transfer = b'{"remote_block_ids": [[1,2]],"n":1e3, "do_remote_prefill":true}'
    prefill.answers = [whole_answer(b'{"choices":[{"text":"x","finish_reason":"length"}],"kv_transfer_params" : %s,'
                                    b'"usage":%s}' % (transfer, usage_with(7)))]
    if stream:
        answer = b'data: {"choices" : [],"usage":%s}\n\ndata: [DONE]\n\n'
        engine.answers = [streamed_answer([answer % usage_with(11)])]
    else:
        answer = b'{"id" : "x"%s, "choices":[ ], "usage":%s}'
        engine.answers = [whole_answer(answer % (b', "kv_transfer_params": {"do_remote_decode":true}', usage_with(11)))]
    router = start_router({"fleets": [{
        "dialect": "vllm_nixl", "prefill": {"instances": [{"url": prefill.url}]},
        "groups": [{"name": "g", "slots": 4, "workers": [{"url": engine.url}]}]}]}).ready["listen"]
    options = b',"stream":true,"stream_options":{"include_usage":true}' if stream else b""
    body = b'{"model":"m","prompt":"hello"%s}' % options
    _, received = ask(router, "/v1/completions", body)
    assert received == answer % (usage_with(7) if stream else (b"", usage_with(7)))
    assert engine.received.get(timeout=5).body == body[:-1] + b',"kv_transfer_params":' + transfer + b"}"
    prefill.close()
