"""Rollout engines: the tokens and log-probs they report are the model's own, whatever shares the batch with them."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from streams.rollout.engines.base import (
    Completion,
    EngineError,
    ModelRefused,
    PromptRefused,
    PromptTooLong,
    SampleRequest,
)
from streams.rollout.engines.recorded import RecordedEngine
from streams.rollout.engines.transformers_engine import TransformersEngine

VOCABULARY = 40
CONTEXT = 64
EOS_OF_GENERATION, EOS_OF_CONFIG = 3, 4
PROMPT = [5, 6, 7, 8, 9]


def write_model(directory: Path, seed: int, *, scale: float = 1.0) -> Path:
    """A tiny random Llama whose two configurations name different end-of-text ids."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, tie_word_embeddings=True, initializer_range=0.4 * scale,
        bos_token_id=1, eos_token_id=EOS_OF_CONFIG, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    assert model.generation_config is not None
    model.generation_config.eos_token_id = [EOS_OF_GENERATION]
    model.save_pretrained(directory)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}w2"
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"), seed=0)


@pytest.fixture(scope="module")
def other_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture
async def engine(model_directory: Path) -> AsyncIterator[TransformersEngine]:
    engine = make_engine(model_directory)
    await engine.start()
    yield engine
    await engine.stop()


def make_engine(directory: Path, max_batch: int = 8) -> TransformersEngine:
    return TransformersEngine(directory, device="cpu", dtype=torch.float32, max_batch=max_batch, seed=1)


def request(group_id: str = "g", samples: int = 1, **changes: object) -> SampleRequest:
    settings: dict[str, object] = {"temperature": 1.0, "max_new_tokens": 12, "prompt_token_ids": PROMPT, **changes}
    return SampleRequest(group_id=group_id, sample_indices=list(range(samples)), **settings)  # type: ignore[arg-type]


async def collect(engine: TransformersEngine | RecordedEngine, wanted: SampleRequest) -> list[Completion]:
    return [completion async for completion in engine.sample(wanted)]


def token_ids(completion: Completion) -> list[int]:
    return [token for span in completion.spans for token in span.token_ids]


def logprobs(completion: Completion) -> list[float]:
    return [logprob for span in completion.spans for logprob in span.logprobs]


def full_pass_logprobs(directory: Path, prompt: list[int], answer: list[int], temperature: float = 1.0) -> torch.Tensor:
    """Log-probs [answer, vocabulary] of one uncached, unpadded forward pass."""
    model = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.float() / temperature, dim=-1)


def assert_logprobs_match(directory: Path, prompt: list[int], completion: Completion, temperature: float = 1.0) -> None:
    answer = token_ids(completion)
    expected = full_pass_logprobs(directory, prompt, answer, temperature)[range(len(answer)), answer]
    torch.testing.assert_close(torch.tensor(logprobs(completion)), expected, atol=1e-4, rtol=0)


async def running_row(engine: TransformersEngine, group_id: str) -> None:
    """Wait until the group has a sampled token."""
    while not any(row.group_id == group_id and row.token_ids for row in engine.running_rows()):  # noqa: ASYNC110
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
async def test_logprobs_equal_a_full_forward_pass(
    engine: TransformersEngine, model_directory: Path, temperature: float
) -> None:
    completions = await collect(engine, request(samples=6, temperature=temperature))
    assert sorted(completion.sample_index for completion in completions) == list(range(6))
    assert len({tuple(token_ids(completion)) for completion in completions}) > 1
    for completion in completions:
        assert_logprobs_match(model_directory, PROMPT, completion, temperature)


async def test_rows_of_many_lengths_do_not_touch_each_other(engine: TransformersEngine, model_directory: Path) -> None:
    """Thirty rows through eight places: rows come, go and move while others run."""
    prompts = [[5 + (i * 7 + j) % 30 for j in range(1 + 3 * i)] for i in range(10)]
    requests = [request(f"g{i}", 3, prompt_token_ids=prompt, max_new_tokens=4 + i) for i, prompt in enumerate(prompts)]
    for prompt, completions in zip(
        prompts, await asyncio.gather(*(collect(engine, one) for one in requests)), strict=True
    ):
        for completion in completions:
            assert_logprobs_match(model_directory, prompt, completion)


async def test_greedy_is_the_argmax_chain(engine: TransformersEngine, model_directory: Path) -> None:
    greedy, _ = await asyncio.gather(
        collect(engine, request("greedy", temperature=0.0)), collect(engine, request("beside", samples=4))
    )
    answer = token_ids(greedy[0])
    assert answer == full_pass_logprobs(model_directory, PROMPT, answer).argmax(dim=-1).tolist()
    assert_logprobs_match(model_directory, PROMPT, greedy[0])


async def test_every_eos_id_ends_an_answer_and_is_part_of_it(engine: TransformersEngine) -> None:
    completions = await collect(engine, request(samples=200, max_new_tokens=30))
    stopped = [token_ids(completion) for completion in completions if completion.finish_reason == "stop"]
    assert {answer[-1] for answer in stopped} == {EOS_OF_GENERATION, EOS_OF_CONFIG}
    ends = {EOS_OF_GENERATION, EOS_OF_CONFIG}
    assert not any(ends & set(answer[:-1]) for answer in map(token_ids, completions))
    for completion in completions:
        if completion.finish_reason == "length":
            assert len(token_ids(completion)) == 30


async def test_stop_text_ends_an_answer(engine: TransformersEngine) -> None:
    completions = await collect(engine, request(samples=50, max_new_tokens=30, stop=("w9",)))
    assert any(token_ids(completion)[-1] == 9 and completion.finish_reason == "stop" for completion in completions)
    assert not any(9 in token_ids(completion)[:-1] for completion in completions)


async def test_never_more_rows_than_max_batch(model_directory: Path) -> None:
    engine = make_engine(model_directory, max_batch=3)
    await engine.start()
    seen: list[int] = []

    async def watch() -> None:
        while True:
            seen.append(len(engine.running_rows()))
            await asyncio.sleep(0)

    watcher = asyncio.create_task(watch())
    completions = await collect(engine, request(samples=10))
    watcher.cancel()
    await engine.stop()
    assert len(completions) == 10
    assert max(seen) == 3


async def test_cancel_ends_a_group_and_no_other(engine: TransformersEngine, model_directory: Path) -> None:
    endless = request("cancelled", samples=12, prompt_token_ids=[5], max_new_tokens=CONTEXT)
    cancelled = asyncio.create_task(collect(engine, endless))
    await running_row(engine, "cancelled")
    kept = asyncio.create_task(collect(engine, request("kept", samples=2)))
    await engine.cancel("cancelled")
    reasons = [completion.finish_reason for completion in await cancelled]
    assert len(reasons) == 12
    assert "cancelled" in reasons
    for completion in await kept:
        assert completion.finish_reason != "cancelled"
        assert_logprobs_match(model_directory, PROMPT, completion)


async def test_leaving_the_iterator_frees_the_rows(engine: TransformersEngine) -> None:
    task = asyncio.create_task(
        collect(engine, request("left", samples=12, prompt_token_ids=[5], max_new_tokens=CONTEXT))
    )
    await running_row(engine, "left")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await collect(engine, request("next"))) == 1
    assert not [row for row in engine.running_rows() if row.group_id == "left"]


async def test_new_weights_mid_sequence_begin_a_new_span(
    engine: TransformersEngine, model_directory: Path, other_directory: Path
) -> None:
    groups = [request(f"g{i}", 4, prompt_token_ids=PROMPT[i:], max_new_tokens=50) for i in range(2)]
    tasks = [asyncio.create_task(collect(engine, group)) for group in groups]
    await running_row(engine, "g1")
    assert engine.version == (0, 0)
    await engine.load(other_directory, incarnation=2, version=5)
    assert engine.version == (2, 5)
    both = 0
    for group, task in zip(groups, tasks, strict=True):
        for completion in await task:
            answer = token_ids(completion)
            start = 0
            for span in completion.spans:
                directory = {(0, 0): model_directory, (2, 5): other_directory}[span.incarnation, span.version]
                expected = full_pass_logprobs(directory, group.prompt_token_ids, answer)
                places = range(start, start + len(span.token_ids))
                torch.testing.assert_close(
                    torch.tensor(span.logprobs), expected[places, span.token_ids], atol=1e-4, rtol=0
                )
                start += len(span.token_ids)
            both += len(completion.spans) == 2
    assert both


async def test_weights_that_do_not_fit_change_nothing(
    engine: TransformersEngine, model_directory: Path, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"no \*\.safetensors"):
        await engine.load(tmp_path, 0, 1)
    LlamaForCausalLM(
        LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    ).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the model"):
        await engine.load(tmp_path, 0, 1)
    assert engine.version == (0, 0)
    assert_logprobs_match(model_directory, PROMPT, (await collect(engine, request()))[0])


async def test_prompt_longer_than_the_context_is_refused(engine: TransformersEngine) -> None:
    with pytest.raises(PromptTooLong):
        await collect(engine, request(prompt_token_ids=[5] * CONTEXT))
    completion = (await collect(engine, request(prompt_token_ids=[5] * (CONTEXT - 2))))[0]
    assert len(token_ids(completion)) <= 2


@pytest.mark.parametrize("token", [-1, VOCABULARY, 2**40])
async def test_a_prompt_outside_the_embedding_is_refused_and_nobody_notices(
    engine: TransformersEngine, model_directory: Path, token: int
) -> None:
    beside = asyncio.create_task(collect(engine, request("beside", samples=4)))
    with pytest.raises(PromptRefused, match=f"token {token} of the prompt is outside the model's embedding of 40 rows"):
        await collect(engine, request(prompt_token_ids=[5, token, 6]))
    for completion in await beside:
        assert_logprobs_match(model_directory, PROMPT, completion)


async def test_a_tiny_temperature_is_the_argmax(engine: TransformersEngine, model_directory: Path) -> None:
    answer = token_ids((await collect(engine, request(temperature=1e-42)))[0])
    assert answer == full_pass_logprobs(model_directory, PROMPT, answer).argmax(dim=-1).tolist()


async def test_weights_that_are_missing_are_not_made_up(model_directory: Path, tmp_path: Path) -> None:
    shutil.copytree(model_directory, tmp_path / "part")
    weights = load_file(tmp_path / "part" / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, tmp_path / "part" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelRefused, match=r"lacks weights .*layers\.1\.mlp\.up_proj"):
        await make_engine(tmp_path / "part").start()


async def test_render_and_decode(engine: TransformersEngine) -> None:
    assert engine.render([{"role": "user", "content": "w7 w8"}]) == [7, 8, 2]


async def test_a_model_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"no tokenizer in .*none"):
        await make_engine(tmp_path / "none").start()


async def test_stopped_engine_ends_what_runs_and_takes_nothing_more(model_directory: Path) -> None:
    engine = make_engine(model_directory)
    await engine.start()
    task = asyncio.create_task(collect(engine, request("g", samples=12, prompt_token_ids=[5], max_new_tokens=CONTEXT)))
    await running_row(engine, "g")
    await engine.stop()
    assert len(await task) == 12
    with pytest.raises(EngineError, match="stopped"):
        await collect(engine, request())
    with pytest.raises(EngineError, match="stopped"):
        await engine.load(model_directory, 0, 1)


async def test_recorded_answers_cycle(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(
        json.dumps({"prompt": "add", "answers": ["é", "b"]}) + "\n" + json.dumps({"prompt": None, "answers": ["?"]})
    )
    engine = RecordedEngine(file, version=3)
    await engine.start()
    prompt = engine.render([{"role": "system", "content": "s"}, {"role": "user", "content": "add"}])
    completions = await collect(engine, request(samples=3, prompt_token_ids=prompt))
    assert [completion.text for completion in completions] == ["é", "b", "é"]
    assert completions[0].spans[0].token_ids == [*"é".encode(), 0]
    assert completions[0].spans[0].version == 3
    short = await collect(
        engine, request(prompt_token_ids=engine.render([{"role": "user", "content": "x"}]), max_new_tokens=1)
    )
    assert (short[0].text, short[0].finish_reason) == ("?", "length")


async def test_recorded_answers_can_be_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"prompt": None, "answers": ["a"]}))
    engine = RecordedEngine(file, delay_seconds=60)
    await engine.start()
    task = asyncio.create_task(collect(engine, request(samples=2)))
    await asyncio.sleep(0.01)
    await engine.cancel("g")
    assert [completion.finish_reason for completion in await task] == ["cancelled", "cancelled"]


async def test_recorded_file_with_a_bad_line(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"prompt": null, "answers": ["a"]}\n{"prompt": 1}\n')
    with pytest.raises(EngineError, match=r"answers.jsonl:2: "):
        await RecordedEngine(file).start()
