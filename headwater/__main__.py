"""`python -m headwater`: how the supervisor starts roles, and the command `headwater`."""

import sys

from headwater.errors import StrangerImported
from headwater.strangers import refuse_strangers


def main() -> None:
    """Run a command; first see that what it will import is ours."""
    try:
        refuse_strangers()
    except StrangerImported as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    from headwater.cli import main as run

    run()


if __name__ == "__main__":
    main()
