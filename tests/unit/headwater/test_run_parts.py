"""Small parts: the run directory's lock, sources, failures in words, the ledger's verdict, the client's events."""

import asyncio
import errno
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.client import Answer, _key, _score_rollout, _scored  # pyright: ignore[reportPrivateUsage]
from headwater.config.load import build_config
from headwater.config.paths import anchored
from headwater.errors import ConfigError, HeadwaterError, InputError, RunDirectoryError
from headwater.files.export import export_model
from headwater.files.run_directory import RunDirectory
from headwater.look.ledger_check import verdict
from headwater.measure.held_out import evaluation_set, training_prompts
from headwater.measure.score import domain_answers, file_answers, summary
from headwater.run.demo import demo_config
from headwater.run.failures import in_words, refuses_restart
from headwater.run.roles import ROLES, _present, role_called, role_of, stop_order  # pyright: ignore[reportPrivateUsage]
from headwater.run.sources import _placed  # pyright: ignore[reportPrivateUsage]
from learner.book.ledger import check_ledger
from learner.book.position import NumberSet
from learner.errors import Superseded
from sandbox.errors import SandboxUnavailable
from schemas import Context, ExactGrader, Message, Prompt, Purpose, Reward, SourceEnd
from schemas.codec import encode
from schemas.topics import ROLLOUTS, prompts_topic
from tasks.config import DomainData
from tasks.domains.humaneval import HUMANEVAL
from tasks.errors import UnreadableData
from wire.errors import BrokerUnreachable, StoredOffsetOutOfRange

CONFIG = demo_config(model="m", seed=0, name="n")


def test_a_run_directory_is_one_runs(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from headwater.files.run_directory import RunDirectory\n"
        f"with RunDirectory(Path({str(tmp_path)!r})).lock():\n    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunDirectoryError, match=f"in use by process {holder.pid}"), RunDirectory(tmp_path).lock():
            pass
        holder.kill()
    with RunDirectory(tmp_path).lock():
        pass


def test_a_run_is_up_while_it_is_locked(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    assert directory.serving_broker() is None
    with directory.lock():
        assert directory.serving_broker() is None
        directory.bootstrap.write_text("127.0.0.1:9092\n")
        assert directory.serving_broker() == "127.0.0.1:9092"
    assert directory.serving_broker() is None


def test_a_refused_run_leaves_no_directory(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with directory.lock():
        pass
    assert not directory.path.exists()
    with directory.lock():
        directory.create()
    assert directory.logs.exists()


def test_who_is_refused_takes_nothing_away(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with directory.lock():
        for _ in range(2):
            with pytest.raises(RunDirectoryError, match="in use"), directory.lock():
                pass
        assert (directory.path / "lock").exists()


def test_a_run_keeps_its_id(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert directory.run_id() == directory.run_id()
    assert directory.run_id().startswith(tmp_path.name + "-")


def test_training_prompts_are_numbered_and_fit_their_topic() -> None:
    data = CONFIG.data[0]
    assert isinstance(data, DomainData)
    assert data.kind == "functions"
    prompts = list(training_prompts(data, CONFIG, range(3, 6)))
    assert [prompt.source.index for prompt in prompts if prompt.source] == [3, 4, 5]
    assert len({prompt.id for prompt in prompts}) == 3
    assert all(prompt.purpose == Purpose.TRAIN and encode(prompt, prompts_topic(prompt.domain)) for prompt in prompts)


def test_the_same_problems_are_measured_before_and_after() -> None:
    before, after = (evaluation_set(CONFIG, epoch=epoch) for epoch in (0, 1))
    assert [prompt.messages for prompt in before] == [prompt.messages for prompt in after]
    assert [prompt.id for prompt in before] == [prompt.id for prompt in after]
    assert {prompt.epoch for prompt in after} == {1}
    held_out = [prompt for prompt in before if prompt.domain == "held-out"]
    sampled = [prompt for prompt in held_out if prompt.sampling.temperature == 1.0]
    greedy = [prompt for prompt in held_out if prompt.sampling.temperature == 0.0]
    assert (len(sampled), len(greedy)) == (64, 64)
    assert {prompt.group_size for prompt in sampled} == {4}
    assert len({prompt.id for prompt in before}) == len(before)
    data = CONFIG.data[0]
    assert isinstance(data, DomainData)
    trained = {p.messages for p in training_prompts(data, CONFIG, range(500))}
    assert not trained & {prompt.messages for prompt in before}


def test_a_source_goes_on_where_the_checkpoint_stands() -> None:
    prompts = [
        Prompt(domain="d", id=name, messages=(Message(role="user", content="x"),), grader=ExactGrader(answer="1"))
        for name in ("a", None, "c", "d", "e")
    ]
    left = list(_placed("mine", iter(prompts), NumberSet(low=1, above={3})))
    assert [(prompt.id, prompt.source.index) for prompt in left if prompt.source] == [("mine-1", 1), ("c", 2), ("e", 4)]


def test_the_demo_takes_overrides_and_refuses_unknown_ones() -> None:
    config = demo_config(model="m", seed=3, name="n", max_updates=2, overrides=["training.batch_groups=4"])
    assert (config.training.max_updates, config.training.batch_groups, config.seed) == (2, 4, 3)
    with pytest.raises(ConfigError, match="did you mean `batch_groups`"):
        demo_config(model="m", seed=0, name="n", overrides=["training.batch_group=4"])


def test_what_a_restart_cannot_mend() -> None:
    assert refuses_restart(Superseded("x"))
    assert refuses_restart(SandboxUnavailable("x"))
    assert refuses_restart(UnreadableData("x"))
    assert refuses_restart(ExceptionGroup("g", [BrokerUnreachable("x"), StoredOffsetOutOfRange("y")]))
    assert not refuses_restart(BrokerUnreachable("x"))
    assert not refuses_restart(RuntimeError("x"))


def test_failures_are_told_in_their_own_words() -> None:
    assert in_words(BrokerUnreachable("no broker")) == "no broker"
    assert in_words(ExceptionGroup("g", [BrokerUnreachable("a"), SandboxUnavailable("b")])) == "a; b"
    assert in_words(UnreadableData("no such file")) == "no such file"
    assert in_words(RuntimeError("a bug")) is None, "it keeps its traceback"


def test_two_roles_of_one_name_do_not_run_in_one_directory(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with (
        directory.sole("sandbox"),
        directory.sole("sandbox-2"),
        pytest.raises(RunDirectoryError, match=r"sandbox runs in .* already: give this one another --name"),
        directory.sole("sandbox"),
    ):
        pass
    with directory.sole("sandbox"):
        pass


def test_a_full_disk_is_told_as_itself_and_not_tried_again() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "runs/x/checkpoints/a")
    try:
        try:
            raise full
        except OSError as error:
            raise RuntimeError("[enforce fail at inline_container.cc] . unexpected pos 64 vs 0") from error
    except RuntimeError as wrapped:
        error = wrapped
    for told in (full, error, ExceptionGroup("g", [full, BrokerUnreachable("no broker")])):
        assert "no space is left on the disk of runs/x/checkpoints/a" in (in_words(told) or "")
        assert refuses_restart(told)
    safetensors = RuntimeError("Error while serializing: I/O error: No space left on device (os error 28)")
    assert "No space left on device" in (in_words(safetensors) or "")
    assert refuses_restart(safetensors)
    assert in_words(OSError(errno.EACCES, "denied")) is None


def test_paths_of_a_run_hold_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    files = [
        {"kind": "file", "name": "a", "path": "a b.jsonl", "domain": "d"},
        {"kind": "file", "name": "b", "path": "s3://bucket/b.jsonl", "domain": "d"},
    ]
    settings = {**CONFIG.model_dump(), "model": "model", "data": files}
    settings["engine"] |= {"kind": "recorded", "recorded_answers": "answers.jsonl"}
    config = anchored(build_config(settings))
    assert config.model == str(tmp_path / "model")
    assert [source.path for source in config.data if source.kind == "file"] == [
        str(tmp_path / "a b.jsonl"),
        "s3://bucket/b.jsonl",
    ]
    assert config.engine.recorded_answers == tmp_path / "answers.jsonl"
    assert anchored(CONFIG).model == "m", "a name stays one"


def test_a_gpu_that_is_not_there_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert _present("engine.device", "cpu") == "cpu"
    with pytest.raises(ConfigError, match=r"engine.device is cuda.*no GPU.*set engine.device to cpu") as refused:
        _present("engine.device", "cuda")
    assert refuses_restart(refused.value)


def test_names_of_roles() -> None:
    assert role_called("rollout").names(3) == ["rollout", "rollout-2", "rollout-3"]
    assert [role_of(name).name for name in ("rollout", "rollout-2")] == ["rollout", "rollout"]
    with pytest.raises(HeadwaterError, match="no role 'a-b'"):
        role_of("a-b")


def test_roles_end_in_their_order_and_are_all_ended() -> None:
    names = [name for role in ROLES for name in role.names(2)]
    ended = stop_order(names)
    assert sorted(name for together in ended for name in together) == sorted(names)
    assert ended[0] == ["source", "source-2"], "first nothing more comes"
    assert ended[-2:] == [["learner", "learner-2"], ["recorder", "recorder-2"]], "what is on its way is still taken in"


def test_the_ledgers_verdict_names_what_is_wrong() -> None:
    assert verdict(check_ledger([], {}), ()).problems == ()
    missing = verdict(check_ledger([], {"log": set(range(30))}), ())
    assert "admitted and not in the ledger: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 20 more" in missing.problems[0]


def test_answers_become_rollouts_of_their_own_group() -> None:
    answer = Answer(id="mine", text="1", grader=ExactGrader(answer="1"))
    out = _score_rollout("score-1-0", answer)
    assert (out.topic, out.key) == ("rollouts", "score-1-0")
    assert encode(out.event, ROLLOUTS)
    context = Context(group_id="score-1-0", sample_index=0, digest="d", domain="score", prompt_id="mine")
    scored = _scored("mine", Reward(context=context, unscorable_words="no jail"))
    assert (scored.reward, scored.unscorable) == (None, "no jail")


def test_a_prompt_without_an_id_has_a_key_all_the_same() -> None:
    prompt = Prompt(domain="d", messages=(Message(role="user", content="x"),), grader=ExactGrader(answer="1"))
    assert _key(prompt) == _key(prompt) != ""
    assert _key(SourceEnd(source="s", domain="d", count=1)) == "s"


def test_humaneval_with_its_own_solutions_and_from_a_file(tmp_path: Path) -> None:
    canonical, empty = domain_answers(HUMANEVAL, "canonical"), domain_answers(HUMANEVAL, "empty")
    assert len(canonical) == len(empty) == 164
    assert canonical[0].text != empty[0].text
    path = tmp_path / "completions.jsonl"
    path.write_text('{"task_id": "HumanEval/3", "completion": "    return 1"}\n')
    assert [answer.id for answer in domain_answers(HUMANEVAL, str(path))] == ["HumanEval/3"]
    path.write_text('{"task_id": "HumanEval/3", "completion": "x"}\n{"task_id": "HumanEval/999", "completion": "x"}\n')
    with pytest.raises(InputError, match=r"completions.jsonl:2: 'HumanEval/999' is no problem"):
        domain_answers(HUMANEVAL, str(path))


def test_answers_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "a", "answer": "1", "grader": {"kind": "exact", "answer": "1"}}\n')
    assert file_answers(path)[0].grader == ExactGrader(answer="1")
    path.write_text('{"id": "a", "answer": "1", "grader": {"kind": "exact", "answer": "1"}, "domian": "x"}\n')
    with pytest.raises(InputError, match=r"answers\.jsonl:1: .*domian"):
        file_answers(path)


def test_scores_are_summed_up_without_the_unscorable() -> None:
    context = Context(group_id="g", sample_index=0, digest="d", domain="score", prompt_id="p")
    scored = [_scored("a", Reward(context=context, reward=r)) for r in (1.0, 0.0)]
    scored.append(_scored("b", Reward(context=context, unscorable_words="no jail")))
    found = summary(scored)
    assert (found["answers"], found["scorable"], found["mean_reward"], found["reward_1"]) == (3, 2, 0.5, 1)


def test_export_copies_the_newest_weights(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    with pytest.raises(RunDirectoryError, match="no weights yet"):
        export_model(directory, tmp_path / "out")
    for name in ("1.9", "1.10", "2.3"):
        (directory.weights / name).mkdir()
        (directory.weights / name / "model.safetensors").write_text(name)
    assert str(export_model(directory, tmp_path / "out")) == "2.3"
    assert (tmp_path / "out" / "model.safetensors").read_text() == "2.3"
    with pytest.raises(Exception, match="is there already"):
        export_model(directory, tmp_path / "out")


def test_the_client_is_found_where_the_readme_says() -> None:
    from headwater import Client

    assert asyncio.iscoroutinefunction(Client.publish)
