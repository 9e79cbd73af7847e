"""Settings: what is required, what is refused, and what the message says."""

import tomllib
from pathlib import Path

import pytest

from headwater.config.load import build_config, load_config, write_config
from headwater.config.paths import anchored
from headwater.config.run_config import RunConfig
from headwater.config.template import template
from headwater.errors import ConfigError
from tasks.config import DomainData

SETTINGS = tomllib.loads(template("run.toml", "mine"))


def test_the_template_is_a_valid_run() -> None:
    config = build_config(SETTINGS)
    assert config.name == "mine"
    assert isinstance(config.data[0], DomainData)
    assert config.training.batch_groups == 8


def test_every_setting_stands_in_the_template() -> None:
    text = template("run.toml", "mine")
    for section in RunConfig.model_fields:
        assert section in text
    for name in ("training", "sampling", "engine", "grading", "broker"):
        for key in RunConfig.model_fields[name].annotation.model_fields:  # pyright: ignore
            if key != "recorded_answers":
                assert f"{key} = " in text, f"{name}.{key} is not in the template"


def test_a_domain_says_what_a_source_of_it_leaves_out() -> None:
    (source,) = build_config({**SETTINGS, "data": [{"kind": "humaneval"}]}).data
    assert isinstance(source, DomainData)
    assert (source.name, source.domain, source.count) == ("humaneval", "humaneval", 164)


def test_written_and_read_again_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    config = build_config(SETTINGS, overrides=['model="a \\"b\\" ü"', "training.betas=[0.8, 0.9]"])
    write_config(config, path)
    assert load_config(path, {}) == config


def test_a_map_is_written_and_read_again(tmp_path: Path) -> None:
    grader = {"kind": "exact", "answer": "{{a.b}}", "or_answers": ['é \\ "', "{{c}}"]}
    source = {"kind": "file", "name": "m", "path": "p", "domain": "d", "map": {"messages": "q", "grader": grader}}
    config = build_config({**SETTINGS, "data": [source]})
    write_config(config, tmp_path / "config.toml")
    assert load_config(tmp_path / "config.toml", {}) == config


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ('data=[{kind="file", name="m", path="p", domain="d", map={mesages="q"}}]', "a prompt has no field `mesages`"),
        ("training.learing_rate=1e-5", "unknown setting `training.learing_rate`; did you mean `learning_rate`?"),
        ("trainning.max_updates=1", "unknown setting `trainning`; did you mean `training`?"),
        ("training.max_updates=soon", "`training.max_updates`: Input should be a valid integer"),
        ("training.algorithm=grop", "`training.algorithm`: there is no algorithm 'grop', but: grpo"),
        ("sampling.group_size=1", "sampling.group_size is 1, but grpo compares the answers of a group: give 2 or more"),
        ("training.snapshot_every_updates=3", "is above max_staleness + 1 (2)"),
        ('data=[{kind="functions", count=1, sed=2}]', "did you mean `seed`?"),
        ('data=[{kind="functions", count=1}, {kind="functions", count=1}]', "two data sources are named 'functions'"),
        ('data=[{kind="functoins", count=1}]', "no domain is named 'functoins'; did you mean 'functions'?"),
        ('data=[{kind="functions"}]', "`data.0.count` is required"),
        ("data=[{count=1}]", "`data.0.kind` is required"),
        ('data=[{kind="humaneval", count=165}]', "the domain 'humaneval' has 164 problems"),
        ("engine.kind=recorded", "needs `recorded_answers`"),
        ("sampling.deadline_seconds=inf", "`sampling.deadline_seconds`: Input should be a finite number"),
        ("evaluation.deadline_seconds=inf", "`evaluation.deadline_seconds`: Input should be a finite number"),
        ("training.learning_rate=nan", "`training.learning_rate`: Input should be"),
        ("training.betas=[0.9, inf]", "Input should be a finite number"),
        ("name=", "`name`"),
        ("name.first=1", "`name` is no table"),
        ("nonsense", "write it as key=value"),
    ],
)
def test_a_wrong_override_says_what_is_wrong(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build_config(SETTINGS, overrides=[override])
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("trained", "published", "sampler", "said"),
    [
        ("float32", None, "float32", []),
        ("bfloat16", None, "bfloat16", []),
        ("float32", "bfloat16", "float32", ["publish_dtype rounds what is trained"]),
        ("float32", "bfloat16", "bfloat16", ["publish_dtype rounds what is trained", "computes in bfloat16"]),
        ("bfloat16", None, "float32", ["computes in float32 what the learner computes in bfloat16"]),
    ],
)
def test_sampler_snapshots_and_learner_of_different_types_are_spoken_of(
    trained: str, published: str | None, sampler: str, said: list[str]
) -> None:
    overrides = [f"training.dtype={trained}", f"engine.dtype={sampler}"]
    overrides += [f"training.publish_dtype={published}"] if published else []
    warnings = build_config(SETTINGS, overrides=overrides).dtype_warnings
    assert len(warnings) == len(said)
    assert all(words in warning for words, warning in zip(said, warnings, strict=True))


def test_a_sampler_that_would_round_away_what_is_trained_is_refused() -> None:
    with pytest.raises(ConfigError, match="the sampler would round small steps away"):
        build_config(SETTINGS, overrides=["training.dtype=float32", "engine.dtype=bfloat16"])


@pytest.mark.parametrize("key", ["batch_groups", "max_staleness", "max_updates", "learning_rate"])
def test_required_settings_have_no_default(key: str) -> None:
    training = {name: value for name, value in SETTINGS["training"].items() if name != key}
    with pytest.raises(ConfigError, match=f"`training.{key}` is required"):
        build_config({**SETTINGS, "training": training})


def test_the_environment_comes_before_overrides_and_after_the_file() -> None:
    environment = {
        "HEADWATER_TRAINING__MAX_UPDATES": "7",
        "HEADWATER_SEED": "3",
        "HEADWATER_BOOTSTRAP": "somewhere:9092",
        "OTHER": "x",
    }
    config = build_config(SETTINGS, environment, ["seed=4"])
    assert (config.training.max_updates, config.seed) == (7, 4)


def test_a_misspelt_variable_is_an_error() -> None:
    with pytest.raises(ConfigError, match="did you mean `max_updates`"):
        build_config(SETTINGS, {"HEADWATER_TRAINING__MAX_UPDATE": "7"})


def test_a_file_that_is_not_there_names_init(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="headwater init"):
        load_config(tmp_path / "absent.toml", {})


def test_a_file_that_is_no_toml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("name = \n")
    with pytest.raises(ConfigError, match="line 1"):
        load_config(path, {})


def test_a_chat_template_goes_along_as_text(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text("{{ messages[0].content }}\n")
    for given, text in ((str(file), "{{ messages[0].content }}\n"), ("{{ bos_token }}", "{{ bos_token }}")):
        assert anchored(build_config(SETTINGS | {"engine": {"chat_template": given}})).engine.chat_template == text
    with pytest.raises(ConfigError, match=r"engine\.chat_template is no Jinja text, and as a file .*nowhere"):
        anchored(build_config(SETTINGS | {"engine": {"chat_template": str(tmp_path / "nowhere")}}))
