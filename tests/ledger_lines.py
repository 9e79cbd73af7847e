"""Lines of a ledger, for tests."""

from learner.book.feed import Ended


def ended(number: int, outcome: str = "trained", *, incarnation: int = 1, log_id: str = "a") -> Ended:
    """Of the group that was admitted with this number."""
    return Ended(
        log_id=log_id,
        admission_number=number,
        group_id=f"{log_id}-{number}",
        domain="sums",
        incarnation=incarnation,
        version=1,
        outcome=outcome,
    )
