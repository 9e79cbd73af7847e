"""Rounding to bfloat16: between neighbours, unbiased, the same every time."""

import math

import pytest
import torch

from learner.training.rounding import dithered


@pytest.mark.parametrize("value", [1.0, -0.75, -(2.0**-130), 0.0, math.inf, -math.inf])
def test_what_bfloat16_has_stays(value: float):
    values = torch.full((1000,), value)
    assert torch.equal(dithered(values, 1).float(), values.bfloat16().float())


def test_nan_stays_nan():
    assert dithered(torch.full((1000,), math.nan), 1).isnan().all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_an_entry_becomes_one_of_its_neighbours_with_the_odds_of_where_it_lies(share: float, sign: float):
    low, high = 1.0, 1.0 + 2.0**-7  # neighbours in bfloat16
    count = 400_000  # several chunks
    rounded = dithered(torch.full((count,), sign * (low + share * (high - low))), 3).float() * sign
    assert set(rounded.tolist()) == {low, high}
    deviation = math.sqrt(share * (1 - share) / count)
    assert float((rounded == high).double().mean()) == pytest.approx(share, abs=5 * deviation)


def test_an_entry_changes_only_with_its_master_and_in_its_direction():
    masters = torch.randn(50, 70, generator=torch.Generator().manual_seed(0)).bfloat16().float()
    steps = 1e-4 * torch.randn(masters.shape, generator=torch.Generator().manual_seed(1))
    before, after = dithered(masters, 5), dithered(masters + steps, 5)
    assert torch.equal(dithered(masters, 5), before)
    moved = (after.float() - before.float()).sign()
    assert bool(((moved == 0) | (moved == steps.sign())).all())
    assert 0.005 < float((moved != 0).float().mean()) < 0.2
    assert not torch.equal(dithered(masters + steps, 6), after)
