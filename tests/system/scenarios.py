"""What clients ask of an OpenAI server, as data, so that every client sends the same and every server is compared.

A scenario names the method of the SDKs, the body and what the answer must hold whoever gives it. The member `emulator`,
which only the emulated engine reads, makes the answer the same every time.
"""

import dataclasses
from collections.abc import Callable

PROMPT_TOKENS = 100
HELLO = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {
    "name": "look_up", "description": "Looks a word up.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}}


def lengths(output: int, **more: int) -> dict:
    return {"prompt_tokens": PROMPT_TOKENS, "output_tokens": output, **more}


def words(first: int, last: int) -> str:
    """The text of the emulator's tokens `first` to `last`."""
    return "".join(f" t{number}" for number in range(first, last + 1))


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a client made of an answer: `events` of a stream or the one `body`; `error` names what was refused."""

    status: int
    body: dict | None = None
    events: list[dict] | None = None
    error: str | None = None

    @property
    def usages(self) -> list[dict]:
        return [event["usage"] for event in self.events if event.get("usage")]

    def choices(self, index: int) -> list[dict]:
        """The parts of one choice, in order."""
        parts = self.events if self.events is not None else [self.body]
        return [choice for part in parts for choice in part["choices"] if choice["index"] == index]

    def text(self, index: int = 0, member: str = "content") -> str:
        if "text" in self.choices(index)[0]:
            return "".join(choice["text"] for choice in self.choices(index))
        messages = [choice.get("delta") or choice.get("message") or {} for choice in self.choices(index)]
        return "".join(message.get(member) or "" for message in messages)

    def finish_reasons(self, index: int = 0) -> list[str]:
        return [choice["finish_reason"] for choice in self.choices(index) if choice.get("finish_reason")]


@dataclasses.dataclass(frozen=True)
class Scenario:
    api: str  # "chat" or "completions"
    body: dict
    holds: Callable[[Answer], bool]
    status: int = 200


def usage(prompt: int, completion: int) -> dict:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def cached(answer: Answer) -> bool:
    """Usage tells what the engine that computed the prompt had of it, which no decode engine knows."""
    told = answer.usages[0] if answer.events is not None else answer.body["usage"]
    return told == {**usage(PROMPT_TOKENS, 8), "prompt_tokens_details": {"cached_tokens": 60}}


def is_whole(text: str, reason: str, tokens: int, prompt: int = PROMPT_TOKENS) -> Callable[[Answer], bool]:
    return lambda answer: (answer.text() == text and answer.finish_reasons() == [reason]
                           and answer.body["usage"] == usage(prompt, tokens))


def is_streamed(text: str, reason: str, usages: list[dict]) -> Callable[[Answer], bool]:
    return lambda answer: (answer.text() == text and answer.finish_reasons() == [reason] and answer.usages == usages)


def has_tool_call(answer: Answer) -> bool:
    message = answer.body["choices"][0]["message"]
    call = message["tool_calls"][0]["function"]
    return call == {"name": "look_up", "arguments": '{"text":"' + words(1, 4) + '"}'}


def streams_tool_call(answer: Answer) -> bool:
    calls = [call for choice in answer.choices(0) for call in choice["delta"].get("tool_calls") or []]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    return (calls[0]["function"]["name"] == "look_up" and calls[0]["id"].startswith("call_")
            and arguments == '{"text":"' + words(1, 4) + '"}')


def answers_each(count: int, tokens: int) -> Callable[[Answer], bool]:
    return lambda answer: all(answer.text(index) == words(1, tokens) and answer.finish_reasons(index) == ["stop"]
                              for index in range(count))


def has_logprobs(answer: Answer) -> bool:
    if "text" in answer.choices(0)[0]:
        told = [token for choice in answer.choices(0) for token in choice["logprobs"]["tokens"]]
    else:
        told = [entry["token"] for choice in answer.choices(0) if choice.get("logprobs")
                for entry in choice["logprobs"]["content"]]
    return "".join(told) == answer.text()


def thinks_aloud(answer: Answer) -> bool:
    # The member's name is `reasoning` in vLLM and `reasoning_content` in SGLang.
    thought = answer.text(0, "reasoning") or answer.text(0, "reasoning_content")
    return thought == words(1, 3) and answer.text() == words(4, 8)


def tells_token_ids(answer: Answer) -> bool:
    ids = [token for choice in answer.choices(0) for token in choice.get("token_ids") or []]
    return ids == [1_000_001, 1_000_002, 1_000_003]


def refused(answer: Answer) -> bool:
    return bool(answer.error)


def chat(holds: Callable[[Answer], bool], status: int = 200, **body) -> Scenario:
    return Scenario("chat", {"messages": HELLO, "emulator": lengths(8), **body}, holds, status)


def completion(holds: Callable[[Answer], bool], status: int = 200, **body) -> Scenario:
    return Scenario("completions", {"prompt": "hello", "emulator": lengths(8), **body}, holds, status)


WITH_USAGE = {"include_usage": True}
FORCED_TOOL = {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look_up"}},
               "emulator": lengths(4)}

SCENARIOS = {
    "chat": chat(is_whole(words(1, 8), "stop", 8)),
    "chat_cut_by_its_limit": chat(is_whole(words(1, 5), "length", 5), max_tokens=5),
    "chat_n2": chat(answers_each(2, 8), n=2),
    "chat_logprobs": chat(has_logprobs, logprobs=True, top_logprobs=0),
    "chat_reasoning": chat(thinks_aloud, emulator=lengths(8, reasoning_tokens=3)),
    "chat_forced_tool": chat(has_tool_call, **FORCED_TOOL),
    "chat_required_tool": chat(has_tool_call, tools=[TOOL], tool_choice="required", emulator=lengths(4)),
    "chat_stream": chat(is_streamed(words(1, 8), "stop", []), stream=True),
    "chat_stream_usage": chat(is_streamed(words(1, 8), "stop", [usage(PROMPT_TOKENS, 8)]), stream=True,
                              stream_options=WITH_USAGE),
    "chat_stream_no_usage": chat(is_streamed(words(1, 8), "stop", []), stream=True,
                                 stream_options={"include_usage": False}),
    "chat_stream_n2": chat(answers_each(2, 8), stream=True, n=2),
    "chat_stream_logprobs": chat(has_logprobs, stream=True, logprobs=True),
    "chat_stream_reasoning": chat(thinks_aloud, stream=True, emulator=lengths(8, reasoning_tokens=3)),
    "chat_stream_tool": chat(streams_tool_call, stream=True, **FORCED_TOOL),
    "chat_one_token": chat(is_whole(words(1, 1), "stop", 1), emulator=lengths(1)),
    "chat_one_token_wanted": chat(is_whole(words(1, 1), "length", 1), max_completion_tokens=1),
    "chat_stream_one_token": chat(is_streamed(words(1, 1), "stop", []), stream=True, emulator=lengths(1)),
    "chat_stream_one_token_wanted": chat(is_streamed(words(1, 1), "length", [usage(PROMPT_TOKENS, 1)]), stream=True,
                                         stream_options=WITH_USAGE, max_tokens=1),
    "chat_cached": chat(cached, emulator=lengths(8, cached_tokens=60)),
    "chat_stream_cached": chat(cached, stream=True, stream_options=WITH_USAGE,
                               emulator=lengths(8, cached_tokens=60)),
    "text": completion(is_whole(words(1, 8), "stop", 8)),
    "text_default_limit": completion(is_whole(words(1, 16), "length", 16, prompt=2), emulator={}),
    "text_n2": completion(answers_each(2, 8), n=2),
    "text_logprobs": completion(has_logprobs, logprobs=1),
    "text_one_token": completion(is_whole(words(1, 1), "stop", 1), emulator=lengths(1)),
    "text_one_token_wanted": completion(is_whole(words(1, 1), "length", 1), max_tokens=1),
    "text_least": completion(is_whole(words(1, 9), "stop", 9), min_tokens=8),
    "text_list": completion(answers_each(3, 8), prompt=["one", "two", "three"]),
    "text_list_n2": completion(answers_each(4, 8), prompt=["one", "two"], n=2),
    "text_token_ids": completion(is_whole(words(1, 3), "stop", 3, prompt=5), prompt=[11, 12, 13, 14, 15],
                                 emulator={"output_tokens": 3}),
    "text_lists_of_token_ids": completion(answers_each(2, 3), prompt=[[11, 12], [13, 14, 15]],
                                          emulator={"output_tokens": 3}),
    "text_returned_token_ids": completion(tells_token_ids, return_token_ids=True, emulator=lengths(3)),
    "text_stream": completion(is_streamed(words(1, 8), "stop", []), stream=True),
    "text_stream_usage": completion(is_streamed(words(1, 8), "stop", [usage(PROMPT_TOKENS, 8)]), stream=True,
                                    stream_options=WITH_USAGE),
    "text_stream_one_token": completion(is_streamed(words(1, 1), "stop", [usage(PROMPT_TOKENS, 1)]), stream=True,
                                        stream_options=WITH_USAGE, emulator=lengths(1)),
    "text_stream_cached": completion(cached, stream=True, stream_options=WITH_USAGE,
                                     emulator=lengths(8, cached_tokens=60)),
    "text_stream_list": completion(answers_each(2, 8), stream=True, prompt=["one", "two"]),
    "text_stream_logprobs": completion(has_logprobs, stream=True, logprobs=1),
    "unknown_model": chat(refused, status=404, model="another"),
    "messages_of_another_type": chat(refused, status=400, messages="hello"),
    "prompt_of_another_type": completion(refused, status=400, prompt=7),
    "n_of_zero": chat(refused, status=400, n=0),
    "stream_of_another_type": completion(refused, status=400, stream="perhaps"),
    "path_that_is_not_served": Scenario("unknown_path", {"input": "hello"}, refused, 404),
}

# Members that only vLLM and the emulator know: SDKs with checked parameters send them as extra members.
EXTENSIONS = ("emulator", "min_tokens", "return_token_ids")


def normalised(value: object) -> object:
    """`value` without what differs between two answers to the same request: ids, times, members left null, dialects."""
    if isinstance(value, list):
        return [normalised(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, member in value.items():
        if member is None:
            continue
        if name == "id" and isinstance(member, str):
            member = member.split("-")[0].split("_")[0]
        elif name == "created":
            member = 0
        elif name == "reasoning_content":
            name = "reasoning"  # SGLang's word for it
        result[name] = normalised(member)
    return result
