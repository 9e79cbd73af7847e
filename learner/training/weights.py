"""A policy version as a Hugging Face directory, and its announcement.

    weights/<incarnation>.<version>/    config, generation config, tokenizer, safetensors

The weights have the type that they are trained in, unless another is asked for. A coarser copy is rounded so that small
steps are not lost (`learner.training.rounding`).

The announcement (`WeightUpdate`) is made by the learner after `write_snapshot` has returned: then every byte is on the
disk (invariant 8).
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from learner.durable import new_directory, remove_directory
from learner.training.engine import DeepSpeedEngine
from learner.training.rounding import dithered
from schemas import PolicyVersion

_NAME = re.compile(r"(\d+)\.(\d+)")
_WEIGHTS = re.compile(r".*\.(safetensors|bin|pt|pth|gguf|h5|msgpack|onnx)(\.index\.json)?")


def write_snapshot(
    weights: Path, engine: DeepSpeedEngine, version: PolicyVersion, model_directory: Path, dtype: torch.dtype
) -> Path:
    """Write this version's directory; one that is there already is left as it is. A collective: all ranks enter."""
    target = weights / str(version)
    state = gather_state(engine, dtype)
    if engine.rank != 0 or target.exists():
        return target
    with new_directory(target) as scratch:
        model: Any = engine.policy.model
        _save(model, state, scratch)
        for path in scratch.glob("*.safetensors"):
            path.chmod(0o644)  # written for its owner alone: a worker may run as another user
        _copy_companions(model_directory, scratch)
        _set_dtype(scratch / "config.json", dtype)
    return target


def gather_state(engine: DeepSpeedEngine, dtype: torch.dtype) -> dict[str, Tensor]:
    """Every parameter and saved buffer in `dtype` on the CPU of rank 0 (empty elsewhere), one gathered at a time."""
    state: dict[str, Tensor] = {}
    for seed, (name, parameter) in enumerate(engine.parameters()):
        with engine.gathered(parameter) as whole:
            if engine.rank == 0:
                coarser = (whole.dtype, dtype) == (torch.float32, torch.bfloat16)
                state[name] = _on_cpu(dithered(whole, seed) if coarser else whole, dtype)
    if engine.rank == 0:
        saved = engine.policy.model.state_dict().keys()
        state |= {name: _on_cpu(buffer, dtype) for name, buffer in engine.policy.model.named_buffers() if name in saved}
    return state


def prune_snapshots(weights: Path, keep: int) -> None:
    """Delete all but the newest `keep`."""
    named = [(_NAME.fullmatch(path.name), path) for path in weights.iterdir()]
    versions = sorted((PolicyVersion(int(match[1]), int(match[2])), path) for match, path in named if match)
    for _, old in versions[:-keep]:
        remove_directory(old)


def _save(model: Any, state: dict[str, Tensor], target: Path) -> None:
    """config.json and safetensors, by the names that the hub has (transformers keeps how they were read)."""
    from transformers import GenerationConfig

    # its own comes as it is with the companions; many a published one is refused when it is written again
    own, model.generation_config = model.generation_config, GenerationConfig()
    try:
        model.save_pretrained(target, state_dict=state)
    finally:
        model.generation_config = own
    (target / "generation_config.json").unlink(missing_ok=True)


def _on_cpu(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    kept = dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to(device="cpu", dtype=kept, copy=True).contiguous()


def _copy_companions(model_directory: Path, target: Path) -> None:
    """Tokenizer, chat template and generation config (every end-of-text id), byte for byte as they came."""
    for path in sorted(model_directory.iterdir()):
        if path.is_file() and path.name != "config.json" and not _WEIGHTS.fullmatch(path.name):
            shutil.copyfile(path, target / path.name)


def _set_dtype(path: Path, dtype: torch.dtype) -> None:
    config = json.loads(path.read_text())
    config["dtype"] = str(dtype).removeprefix("torch.")
    path.write_text(json.dumps(config, indent=2) + "\n")
