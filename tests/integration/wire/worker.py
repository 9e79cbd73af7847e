"""A hop in a process of its own, to be killed. Arguments: shell, state directory; the broker is in the environment."""

import asyncio
import sys
from pathlib import Path

from tests.integration.wire.hops import SHELLS, Echo
from wire.metrics import Metrics
from wire.settings import from_environment


async def main() -> None:
    shell, state = sys.argv[1:]
    await SHELLS[shell](
        Echo(longest_seconds=0.2),
        from_environment(),
        stop=asyncio.Event(),
        instance_id="worker-0",
        state_directory=Path(state),
        metrics=Metrics(),
    )


if __name__ == "__main__":
    asyncio.run(main())
