"""`python -m tests.simulation --seeds 1000 [--first N] [--bug NAME]`, or `--seed N --verbose` for one history."""

import argparse
import sys
import time
from contextlib import nullcontext

from tests.simulation.bugs import BUGS, planted
from tests.simulation.world import simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="run this one alone")
    parser.add_argument("--verbose", action="store_true", help="print the history also when all is well")
    parser.add_argument("--bug", choices=sorted(BUGS), help="plant this bug")
    options = parser.parse_args()
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    begun, steps, moves = time.perf_counter(), 0, 0
    with planted(options.bug) if options.bug else nullcontext():
        for seed in seeds:
            world, violation = simulate(seed)
            steps += len(world.oracle.steps)
            moves += len(world.history)
            if violation is not None or options.verbose:
                print(world.story())
            if violation is not None:
                print(f"\nseed {seed}: {violation}", file=sys.stderr)
                return 1
    print(f"{len(seeds)} seeds, {moves} events, {steps} updates: all well in {time.perf_counter() - begun:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
