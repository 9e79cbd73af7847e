"""When two numbers are the same. Pure."""

import math

TOLERANCE = 1e-6


def close(actual: float, expected: float, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers agree to the tolerance, absolute or relative to the expected one; nan equals nothing."""
    if math.isinf(expected) or math.isinf(actual):
        return actual == expected
    return abs(actual - expected) <= tolerance * max(1.0, abs(expected))
