"""The DeepSpeed engine: one process now, its collectives ready for more.

DeepSpeed's own step refuses a gradient that is not finite: it clears the gradients, leaves weights, moments
and learning rate as they were, and says so in `optimizer.overflow` (all ZeRO stages; stage 0 would not).
Micro-batches are accumulated by the caller (`managed_gradient_accumulation: false`): their number differs
from update to update.
"""

import importlib.util
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from learner.config import LearnerConfig, Training
from learner.errors import CompilerMissing
from learner.training.operator_build import exclusive_build
from learner.training.policy import Policy, check_parity, load_policy
from learner.training.rounding import dithered

REDUCE_BUCKET_ENTRIES = 1 << 22
GROUP_ENTRIES = 1 << 24
"""Of an optimizer group; a larger matrix has one of its own."""
_SEEDS_OF_A_RANK = 1 << 20
"""More than a model has tensors."""


@dataclass(frozen=True, slots=True)
class DeepSpeedEngine:
    """A DeepSpeed engine around a `Policy`, and what the step and the snapshots need to know of it."""

    deepspeed: Any
    policy: Policy
    vocabulary: int
    shares_prompts: bool
    """Whether a row may hold several answers to one prompt (`learner.training.batch`)."""
    world_size: int
    rank: int

    @property
    def device(self) -> torch.device:
        return torch.device(self.deepspeed.device)

    def parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Names as the Hugging Face model has them."""
        yield from self.policy.model.named_parameters()

    @contextmanager
    def gathered(self, parameter: nn.Parameter) -> Generator[Tensor]:
        """The whole parameter, one at a time: under ZeRO-3 it is in parts (a collective; all ranks enter)."""
        if not hasattr(parameter, "ds_id"):
            yield parameter.data
            return
        import deepspeed

        with deepspeed.zero.GatheredParameters([parameter]):
            yield parameter.data

    @torch.no_grad()
    def round_weights(self) -> None:
        """In bfloat16: make the weights that are trained on and published from the masters, small steps and all.

        After every step and every load: DeepSpeed rounds to the nearest. A collective; all ranks enter.
        """
        if next(self.policy.parameters()).dtype != torch.bfloat16:
            return
        from deepspeed.utils import safe_get_full_fp32_param, safe_get_local_fp32_param

        parameter: Any  # with DeepSpeed's own attributes
        for seed, parameter in enumerate(self.policy.parameters()):
            master: Any
            if hasattr(parameter, "ds_id"):  # ZeRO-3: each rank has a part, and rounds it
                master = safe_get_local_fp32_param(parameter)
                parameter.ds_tensor.data.copy_(dithered(master, seed + self.rank * _SEEDS_OF_A_RANK))
            else:
                master = safe_get_full_fp32_param(parameter)
                parameter.data.copy_(dithered(master, seed))

    def weights_finite(self) -> bool:
        """Whether every weight held by this process is finite."""
        # a sum is not finite when an entry is not, and reads the weights once; isfinite().all() reads them four times
        sums = [
            getattr(parameter, "ds_tensor", parameter.data).sum(dtype=torch.float32)
            for parameter in self.policy.parameters()
        ]
        return bool(torch.isfinite(torch.stack(sums)).all())


def start_engine(config: LearnerConfig) -> DeepSpeedEngine:
    """Load the model and make the engine. Takes seconds; the very first also compiles, for about a minute."""
    check_compiler()
    torch.manual_seed(config.seed)
    torch.set_num_threads(config.training.threads)
    dtype: torch.dtype = getattr(torch, config.training.dtype)
    policy = load_policy(config.model_directory, dtype, torch.device(config.training.device))
    vocabulary = int(policy.model.get_input_embeddings().weight.shape[0])
    return wrap(policy, vocabulary, config.training)


def wrap(policy: Policy, vocabulary: int, training: Training) -> DeepSpeedEngine:
    """The engine around a policy that is in memory."""
    rank, world_size = _join_process_group(training.device)
    import deepspeed

    optimizer = torch.optim.AdamW(
        _parameter_groups(policy, training.weight_decay), lr=training.learning_rate, betas=training.betas, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: warmup(update, training.warmup_updates))
    with exclusive_build():
        engine, *_ = deepspeed.initialize(
            model=policy,
            optimizer=optimizer,
            lr_scheduler=cast(Any, schedule),  # its type names torch's older base class
            config=deepspeed_config(training, world_size),
            dist_init_required=False,
        )
    shares_prompts = check_parity(policy, vocabulary)  # after DeepSpeed: it is the module as it trains
    return DeepSpeedEngine(engine, policy, vocabulary, shares_prompts, world_size, rank)


def warmup(update: int, warmup_updates: int) -> float:
    """Factor of the learning rate: rises in equal steps to 1 at the last of the `warmup_updates`."""
    return min(1.0, (update + 1) / warmup_updates) if warmup_updates else 1.0


def deepspeed_config(training: Training, world_size: int) -> dict[str, Any]:
    """DeepSpeed's settings. The batch sizes are formal: the caller accumulates and divides."""
    # by default ZeRO-1 copies all gradients into a buffer before its step: as much memory again as they have
    small = {"contiguous_gradients": False, "reduce_bucket_size": REDUCE_BUCKET_ENTRIES}
    of_stage: dict[str, Any] = small if training.zero_stage == 1 else {}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "train_batch_size": world_size,
        "managed_gradient_accumulation": False,
        "gradient_clipping": training.max_grad_norm,
        "zero_optimization": {"stage": training.zero_stage, "overlap_comm": False, **of_stage},
        "bf16": {"enabled": training.dtype == "bfloat16"},
        # micro-batches add up in float32, so that how a batch is cut does not change the step
        "data_types": {"grad_accum_dtype": "fp32"},
        "steps_per_print": 1 << 30,
    }


def _parameter_groups(policy: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices decay; norms and biases do not.

    Of bounded size: the step makes a flat copy of one group's gradients at a time.
    """
    parameters = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    groups: list[dict[str, Any]] = []
    for decay, alike in (
        (weight_decay, [parameter for parameter in parameters if parameter.dim() >= 2]),
        (0.0, [parameter for parameter in parameters if parameter.dim() < 2]),
    ):
        room = 0
        for parameter in alike:
            if parameter.numel() > room:
                groups.append({"params": [], "weight_decay": decay})
                room = GROUP_ENTRIES
            groups[-1]["params"].append(parameter)
            room -= parameter.numel()
    return groups


def _join_process_group(device: str) -> tuple[int, int]:
    """Rank and world size: of the launcher where there is one, else a group of this process alone."""
    distributed = torch.distributed
    if not distributed.is_initialized():
        backend = "nccl" if device == "cuda" else "gloo"
        if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
            distributed.init_process_group(backend)
        else:
            # in memory: no port to find, none to collide. DeepSpeed reads these two even so.
            os.environ["LOCAL_RANK"] = "0"
            os.environ["DS_ACCELERATOR"] = device
            distributed.init_process_group(
                backend,
                store=distributed.HashStore(),  # pyright: ignore[reportPrivateImportUsage] # documented as public
                rank=0,
                world_size=1,
            )
    return distributed.get_rank(), distributed.get_world_size()


def check_compiler() -> None:
    """Raise CompilerMissing with the fix, before DeepSpeed fails in the middle of its first build."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise CompilerMissing(
            f"the learner needs a C++ compiler ({compiler!r} is not on PATH): DeepSpeed builds a small operator at its "
            "first start. On Debian or Ubuntu: `apt-get install g++`"
        )
    if shutil.which("ninja") is None:
        beside_python = Path(sys.executable).parent
        if not (beside_python / "ninja").exists():
            hint = "" if importlib.util.find_spec("ninja") is None else " (its package is here, its command is not)"
            raise CompilerMissing(f"the learner needs ninja on PATH{hint}: `pip install ninja`")
        # a virtual environment that was not activated: its commands are beside its interpreter
        os.environ["PATH"] = f"{beside_python}{os.pathsep}{os.environ.get('PATH', '')}"
