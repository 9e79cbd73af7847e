"""The codec: what comes back is what went in, and what is wrong is named."""

import json

import msgspec
import pytest

from schemas import (
    Context,
    EventTooLarge,
    Execution,
    FunctionGrader,
    FunctionTest,
    MalformedEvent,
    PolicyVersion,
    Prompt,
    Rollout,
    SourceEnd,
    Task,
    TokenSpan,
    UnknownVersion,
)
from schemas.codec import decode, encode
from schemas.tokens import pack_logprobs, pack_token_ids, unpack_logprobs, unpack_token_ids
from schemas.topics import DEAD_LETTERS, EXECUTIONS, FIXED_TOPICS, ROLLOUTS, prompts_topic, topic_spec

PROMPTS = prompts_topic("math")
GOOD = {
    "domain": "math",
    "messages": [{"role": "user", "content": "2+2?"}],
    "grader": {"kind": "exact", "answer": "4"},
}


def prompt_bytes(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def test_a_prompt_of_plain_json_is_read_with_its_defaults() -> None:
    prompt = decode(prompt_bytes(), PROMPTS)
    assert isinstance(prompt, Prompt)
    assert (prompt.id, prompt.group_size, prompt.purpose, prompt.schema_version) == (None, 8, "train", 1)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", ["prompt", "truncated"]),
        (b"\xff\xfe", ["prompt", "malformed"]),
        (b"[1]", ["Expected `object`"]),
        (prompt_bytes(mesages=[]), ["unknown field `mesages`", "did you mean `messages`"]),
        (prompt_bytes(messages=[{"role": "user", "contents": "x"}]), ["$.messages[0]", "did you mean `content`"]),
        (prompt_bytes(grader={"kind": "exat", "answer": "4"}), ["$.grader.kind", "did you mean `exact`"]),
        (prompt_bytes(grader={"kind": "function", "entry_point": "f", "tests": []}), ["$.grader.tests", "length >= 1"]),
        (prompt_bytes(grader={"kind": "function", "entry_point": "f"}), ["missing required field `tests`"]),
        (prompt_bytes(group_size="8"), ["$.group_size", "Expected `int`"]),
        (prompt_bytes(group_size=0), ["$.group_size", ">= 1"]),
        (prompt_bytes(domain="No Spaces"), ["$.domain"]),
        (prompt_bytes(messages=[]), ["exactly one of `messages` and `token_ids`"]),
        (prompt_bytes(token_ids=[1]), ["exactly one of `messages` and `token_ids`"]),
        (prompt_bytes(purpose="score"), ["publish answers to `rollouts`"]),
        (prompt_bytes(type="promt"), ["`promt`", "did you mean `prompt`"]),
        (b'{"metadata":' + b"[" * 100_000, ["prompt"]),
    ],
)
def test_what_is_wrong_is_named(data: bytes, words: list[str]) -> None:
    with pytest.raises(MalformedEvent) as caught:
        decode(data, PROMPTS)
    for word in words:
        assert word in str(caught.value)


def test_another_major_version_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownVersion, match="schema_version 2"):
        decode(prompt_bytes(schema_version=2, anything="new"), PROMPTS)


def test_an_unknown_field_of_an_internal_event_is_ignored() -> None:
    event = json.loads(encode(a_rollout(), ROLLOUTS))
    event["from_a_later_release"] = 1
    event["task"]["also"] = 2
    assert decode(json.dumps(event).encode(), ROLLOUTS) == a_rollout()


def test_the_size_limit_holds_both_ways() -> None:
    large = prompt_bytes(messages=[{"role": "user", "content": "x" * 5_000_000}])
    with pytest.raises(EventTooLarge, match=r"5,000,\d+ bytes"):
        decode(large, PROMPTS)
    rollout = msgspec.structs.replace(a_rollout(), text="x" * (17 << 20))
    with pytest.raises(EventTooLarge, match="rollout g-0"):
        encode(rollout, ROLLOUTS)


def test_every_event_of_a_topic_is_told_apart_by_its_type() -> None:
    end = SourceEnd(source="s", domain="math", count=3)
    assert decode(encode(end, PROMPTS), PROMPTS) == end


def test_tokens_and_logprobs_come_back_unchanged() -> None:
    rollout = decode(encode(a_rollout(), ROLLOUTS), ROLLOUTS)
    assert isinstance(rollout, Rollout)
    prompt, completion = rollout.spans
    assert unpack_token_ids(prompt.token_ids) == [1, 2, 49151]
    assert unpack_token_ids(completion.token_ids) == [5, 0]
    assert unpack_logprobs(completion.logprobs) == [-0.5, -2.0]
    assert completion.policy_version == PolicyVersion(1, 3)


def test_token_bytes_are_little_endian() -> None:
    assert pack_token_ids([1, -2]) == b"\x01\x00\x00\x00\xfe\xff\xff\xff"
    assert pack_logprobs([1.0]) == b"\x00\x00\x80\x3f"


def test_whole_numbers_of_any_size_reach_the_grader_unchanged() -> None:
    test = FunctionTest.of([2**70], -(10**40))
    execution = Execution(
        execution_id="e",
        context=Context(group_id="g", sample_index=0, digest="d", domain="math", prompt_id="p"),
        program="",
        grader=FunctionGrader(entry_point="f", tests=(test,)),
    )
    again = decode(encode(execution, EXECUTIONS), EXECUTIONS)
    assert isinstance(again, Execution)
    assert isinstance(again.grader, FunctionGrader)
    assert json.loads(bytes(again.grader.tests[0].args)) == [2**70]
    assert json.loads(bytes(again.grader.tests[0].expected)) == -(10**40)


def test_the_envelope_is_always_written() -> None:
    written = json.loads(encode(a_rollout(), ROLLOUTS))
    assert {"type", "schema_version", "run_id", "purpose", "trace_id"} <= written.keys()


def test_the_topic_table_is_found_by_name() -> None:
    assert topic_spec("prompts.math").events[0] is Prompt
    assert topic_spec("executions.mine").events == EXECUTIONS.events
    with pytest.raises(KeyError, match="no topic of the contract"):
        topic_spec("rollout")
    grouped = {topic.name for topic in FIXED_TOPICS if topic.grouped}
    assert {"generations", "rollouts", "verdicts", "rewards", "trajectories"} <= grouped
    assert DEAD_LETTERS.max_event_bytes >= max(topic.max_event_bytes for topic in FIXED_TOPICS)


def a_rollout() -> Rollout:
    return Rollout(
        rollout_id="g-0",
        group_id="g",
        task=Task(prompt_id="p", domain="math", grader=decode(prompt_bytes(), PROMPTS).grader),  # type: ignore[attr-defined]
        spans=(
            TokenSpan(token_ids=pack_token_ids([1, 2, 49151])),
            TokenSpan(
                token_ids=pack_token_ids([5, 0]),
                logprobs=pack_logprobs([-0.5, -2.0]),
                trainable=True,
                policy_version=PolicyVersion(1, 3),
            ),
        ),
        text="4",
    )
