"""Where the broker is and how to speak to it: one value that every client is made from."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from schemas.topics import DEFAULT_PREFIX

Protocol = Literal["PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT"]

_ENVIRONMENT = {
    "bootstrap": "HEADWATER_KAFKA_BOOTSTRAP",
    "prefix": "HEADWATER_KAFKA_PREFIX",
    "protocol": "HEADWATER_KAFKA_PROTOCOL",
    "ca_file": "HEADWATER_KAFKA_CA_FILE",
    "sasl_mechanism": "HEADWATER_KAFKA_SASL_MECHANISM",
    "username": "HEADWATER_KAFKA_USERNAME",
    "password": "HEADWATER_KAFKA_PASSWORD",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """A broker, a topic prefix, and the security between. The password never shows in a repr."""

    bootstrap: str
    """`host:port`, or several with commas."""
    prefix: str = DEFAULT_PREFIX
    """One prefix serves one learner."""
    protocol: Protocol = "PLAINTEXT"
    ca_file: str | None = None
    """PEM file of the authority that signed the broker's certificate; None: the system's."""
    sasl_mechanism: str = "SCRAM-SHA-512"
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ValueError("bootstrap is empty: give host:port of a broker")
        if self.protocol not in get_args(Protocol):
            raise ValueError(f"security protocol {self.protocol!r} is none of {', '.join(get_args(Protocol))}")
        if self.uses_sasl and not (self.username and self.password):
            raise ValueError(f"{self.protocol} needs a username and a password")
        if self.username and not self.uses_sasl:
            raise ValueError(f"a username has no effect with {self.protocol}: use SASL_SSL")
        if self.ca_file and not self.uses_tls:
            raise ValueError(f"a CA file has no effect with {self.protocol}: use SSL or SASL_SSL")

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_SSL", "SASL_PLAINTEXT")

    def name(self, logical: str) -> str:
        """The broker's name of a logical topic or consumer group."""
        return self.prefix + logical

    def logical(self, name: str) -> str:
        """The inverse of `name`. Raises ValueError for a name of another prefix."""
        if not name.startswith(self.prefix):
            raise ValueError(f"{name} does not carry the prefix {self.prefix!r}")
        return name[len(self.prefix) :]

    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context of every client; None without TLS."""
        return ssl.create_default_context(cafile=self.ca_file) if self.uses_tls else None

    def to_environment(self) -> dict[str, str]:
        """The variables that `from_environment` reads: how a parent hands these settings to a child process."""
        values = {name: getattr(self, name) for name in _ENVIRONMENT}
        return {_ENVIRONMENT[name]: str(value) for name, value in values.items() if value is not None}


def from_environment(environ: Mapping[str, str] = os.environ, **given: str | None) -> KafkaSettings:
    """Settings from `HEADWATER_KAFKA_*`; what is `given` and not None goes first.

    Raises ValueError when no bootstrap is known, and for values that make no sense together.
    """
    values = {name: environ[key] for name, key in _ENVIRONMENT.items() if key in environ}
    values |= {name: value for name, value in given.items() if value is not None}
    if "bootstrap" not in values:
        raise ValueError("no broker: give --bootstrap HOST:PORT or set HEADWATER_KAFKA_BOOTSTRAP")
    return KafkaSettings(**values)  # pyright: ignore[reportArgumentType] - the protocol's name is checked there
