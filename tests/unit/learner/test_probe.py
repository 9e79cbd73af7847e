"""What is measured of a publication, on real snapshots of a tiny model."""

import math
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from learner.algorithms.kl import exact
from learner.training.probe import changed_share
from tests.learner_support import tiny_model


def test_exact_kl_of_two_known_distributions():
    half, quarter = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    expected = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert exact(half.log(), quarter.log()).tolist() == pytest.approx([expected])
    assert exact(half.log(), half.log()).tolist() == [0.0]


def test_the_changed_share_counts_entries_of_every_tensor(tmp_path: Path):
    before = tiny_model(tmp_path / "before")
    model = AutoModelForCausalLM.from_pretrained(before, dtype="auto")
    entries = sum(parameter.numel() for parameter in model.parameters())
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[3, :5] += 1.0
        model.model.norm.weight[7] += 1.0
    model.save_pretrained(tmp_path / "after")
    assert changed_share(before, tmp_path / "after") == pytest.approx(6 / entries)
    assert changed_share(before, before) == 0.0
