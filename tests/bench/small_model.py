"""A model for `--quick`, and the directory of the demo's."""

from pathlib import Path

from headwater.run.models import model_directory

DEMO_MODEL = "smollm2-135m-instruct"
VOCABULARY = 512


async def bench_model(quick: bool, scratch: Path) -> Path:
    """The Hugging Face directory of the demo's model; when quick, of a small random Llama made in `scratch`."""
    return _small_llama(scratch / "small-llama") if quick else await model_directory(DEMO_MODEL)


def _small_llama(directory: Path) -> Path:
    """A random Llama of a million parameters with a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            tie_word_embeddings=True,
        )
    )
    model.generation_config = GenerationConfig(eos_token_id=[3], pad_token_id=3)
    model.save_pretrained(directory)
    words = Tokenizer(models.WordLevel({f"w{number}": number for number in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words)
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }} {% endfor %}w2"
    tokenizer.save_pretrained(directory)
    return directory
