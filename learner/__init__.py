"""Training: feed, GRPO on a DeepSpeed engine, checkpoints, weights published back. See README.md."""
