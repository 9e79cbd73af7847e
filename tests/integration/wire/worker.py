"""A hop in a process of its own, to be killed. Arguments: shell, state directory, a straggler's seconds."""

import asyncio
import sys
from pathlib import Path

from tests.integration.wire.hops import SHELLS, Echo
from wire.kafka.settings import from_environment
from wire.metrics import Metrics


async def main() -> None:
    shell, state, straggler_seconds = sys.argv[1:]
    await SHELLS[shell](
        Echo(longest_seconds=0.1, straggler_seconds=float(straggler_seconds)),
        from_environment(),
        stop=asyncio.Event(),
        instance_id="worker-0",
        state_directory=Path(state),
        metrics=Metrics(),
    )


if __name__ == "__main__":
    asyncio.run(main())
