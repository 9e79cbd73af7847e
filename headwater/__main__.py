"""`python -m headwater`: how the supervisor starts roles."""

from headwater.cli import main

main()
