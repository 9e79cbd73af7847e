"""The host's side of a jail, against an init that is played here."""

import json
import socket
import struct
from pathlib import Path

import pytest

from sandbox.errors import JailLost
from sandbox.jail.controlgroups import Hierarchy
from sandbox.jail.jails import Jail, Site
from sandbox.languages import toolchains


@pytest.mark.parametrize(
    ("answer", "why"), [({"settled": True}, None), ({"settled": False}, "does not come back"), (None, "is gone")]
)
async def test_a_jail_whose_memory_does_not_come_back_is_lost(answer: dict[str, bool] | None, why: str | None) -> None:
    site = Site(Path("nsjail"), Hierarchy(0), Path("staging"), None, root=False, token=0)
    jail = Jail(site, toolchains.locate("python"), 0)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    jail._socket = ours  # pyright: ignore[reportPrivateUsage]
    with ours, theirs:
        if answer is None:
            theirs.shutdown(socket.SHUT_WR)
        else:
            text = json.dumps(answer).encode()
            theirs.sendall(struct.pack(">I", len(text)) + text)
        if why is None:
            await jail.wipe()
        else:
            with pytest.raises(JailLost, match=why):
                await jail.wipe()
