"""Where the broker is, and secrets that stay secret."""

import pytest

from wire.kafka.settings import KafkaSettings, from_environment


def test_names_carry_the_prefix_and_lose_it_again() -> None:
    settings = KafkaSettings(bootstrap="b:1", prefix="run7.")
    assert settings.name("rollouts") == "run7.rollouts"
    assert settings.logical("run7.rollouts") == "rollouts"
    with pytest.raises(ValueError, match="prefix"):
        settings.logical("other.rollouts")


def test_the_password_never_shows() -> None:
    settings = KafkaSettings(bootstrap="b:1", protocol="SASL_SSL", username="u", password="hunter2")
    assert "hunter2" not in repr(settings)


def test_a_child_process_gets_the_same_settings() -> None:
    settings = KafkaSettings(bootstrap="b:1", prefix="x.", protocol="SASL_SSL", username="u", password="p")
    assert from_environment(settings.to_environment()) == settings


def test_what_is_given_goes_before_the_environment() -> None:
    environment = {"HEADWATER_KAFKA_BOOTSTRAP": "env:1", "HEADWATER_KAFKA_PREFIX": "env."}
    assert from_environment(environment, bootstrap="given:1", prefix=None) == KafkaSettings(
        bootstrap="given:1", prefix="env."
    )


def test_no_broker_names_the_fix() -> None:
    with pytest.raises(ValueError, match="--bootstrap"):
        from_environment({})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"protocol": "SASL_SSL"}, "username and a password"),
        ({"username": "u", "password": "p"}, "no effect"),
        ({"ca_file": "/x.pem"}, "no effect"),
        ({"protocol": "TLS"}, "none of"),
        ({"bootstrap": ""}, "bootstrap"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused(values: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KafkaSettings(**{"bootstrap": "b:1", **values})  # pyright: ignore[reportArgumentType]
