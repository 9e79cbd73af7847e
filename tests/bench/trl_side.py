"""TRL's side of the bench `trl`: a GRPOTrainer on given prompts. Runs in an environment of its own.

    python -P trl_side.py SETTINGS.json     one JSON line an update on standard output: {"seconds", "reward"}

The settings name the command of the grader, a process that answers every line of answers with a line of rewards.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Grader:
    """A reward function that asks another process."""

    __name__ = "tests_passed"

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, completions: list[Any], grader: list[str], **_: Any) -> list[float | None]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answers = [
            {"text": completion[0]["content"], "grader": one}
            for completion, one in zip(completions, grader, strict=True)
        ]
        self._process.stdin.write(json.dumps(answers) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Told(TrainerCallback):
    """Tells of every update, and ends training when somebody has seen enough."""

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._begun = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and "reward" in logs:
            seconds = time.monotonic() - self._begun
            print(json.dumps({"seconds": round(seconds, 2), "reward": logs["reward"]}), flush=True)


def main(settings: dict[str, Any]) -> None:
    """Train for so many updates."""
    torch.manual_seed(0)
    prompts = [json.loads(line) for line in Path(settings["prompts"]).read_text().splitlines()]
    grader = Grader(settings["grader_command"])
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(
            settings["model"], dtype=torch.float32, attn_implementation="sdpa", local_files_only=True
        ),
        processing_class=AutoTokenizer.from_pretrained(settings["model"], padding_side="left"),
        reward_funcs=grader,
        train_dataset=Dataset.from_list(prompts),
        args=GRPOConfig(
            output_dir=settings["scratch"],
            per_device_train_batch_size=settings["answers"],
            num_generations=settings["group_size"],
            max_completion_length=settings["max_new_tokens"],
            learning_rate=settings["learning_rate"],
            max_steps=settings["max_updates"],
            adam_beta1=0.9,
            adam_beta2=0.95,
            lr_scheduler_type="constant",
            max_grad_norm=1.0,
            beta=0.0,
            epsilon=0.2,
            epsilon_high=0.28,
            loss_type="dapo",
            temperature=1.0,
            shuffle_dataset=False,
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=False,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=0,
        ),
        callbacks=[Told()],
    )
    trainer.train()
    grader.close()


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
