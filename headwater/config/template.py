"""The commented TOML that `headwater init` writes."""

TEMPLATE = """\
# A Headwater run: `headwater up {file}`. Check it with `headwater up {file} --check`.
# Any key may be overridden: --set training.max_updates=10, or HEADWATER_TRAINING__MAX_UPDATES=10.

name = "{name}"                    # the run directory is runs/<name>
model = "smollm2-135m-instruct"    # or a Hugging Face model directory, or a hub id
seed = 0

# Where prompts come from; several may be given. Anyone may publish more while the run goes on.
[[data]]
kind = "functions"                 # small function-writing problems, made from a seed
name = "functions"                 # what checkpoints count its prompts under
domain = "functions"               # its prompt stream: topic prompts.functions
count = 4096                       # prompts to publish

# [[data]]
# kind = "file"
# name = "mine"
# path = "prompts.jsonl"           # a file, folder or glob of JSONL, Parquet or Arrow, local or s3://…
# domain = "mine"                  # of all its prompts
# map = {{messages = "question", answer = "answer"}}   # for rows that are no prompts: README, "Your data"
# epochs = 1
# shuffle_seed = 0

[training]
batch_groups = 8                   # B: groups an update
max_staleness = 1                  # η: updates that a group's oldest token may lag behind
max_updates = 20                   # the run ends here
# max_seconds = 3600.0             # or when this much training leaves no time for another update
learning_rate = 1e-5
# warmup_updates = 0
# betas = [0.9, 0.95]
# weight_decay = 0.0
# algorithm = "grpo"
# clip_low = 0.2                   # the ratio against the behaviour policy stays in
# clip_high = 0.28                 # [1 - clip_low, 1 + clip_high]
# max_grad_norm = 1.0
# micro_batch_tokens = 4096        # padded tokens of one forward and backward pass
# zero_stage = 1                   # DeepSpeed ZeRO: 1, 2 or 3
# dtype = "auto"                   # "float32" or "bfloat16": the faster here, for sampler and learner alike
# publish_dtype = "float32"        # of the weights that are sampled with; absent: dtype
# device = "cpu"                   # or "cuda"
# threads = 0                      # CPU threads; 0: as many as cores
# checkpoint_every_updates = 5
# keep_checkpoints = 2
# snapshot_every_updates = 1       # weights published as a Hugging Face directory
# keep_snapshots = 4

[sampling]                         # of this run's tasks and measurements, and of prompts of its files that do not
                                   # say it themselves; what others publish brings its own
group_size = 8                     # answers to one prompt
max_new_tokens = 96
# temperature = 1.0
# stop = []                        # texts that end an answer too, for example ["```\\n"]
# deadline_seconds = 900.0         # from a group's admission to its end

# [engine]
# kind = "transformers"            # or "recorded": answers from a file, for tests
# workers = 1                      # rollout worker processes
# device = "cpu"
# dtype = "auto"                   # as the learner's
# threads = 0
# max_batch = 32                   # answers sampled side by side
# chat_template = "chat.jinja"     # a file, or the Jinja text: goes before the tokenizer's own

# [grading]
# sandbox_workers = 1
# allow_unenforced = []            # limits this host need not enforce; `headwater doctor` names them

# [evaluation]
# before_and_after = false         # measure held-out tasks before the first update and after the last
# prompts = 64
# new_template_prompts = 20        # of a second set, of templates never trained on
# samples = 4                      # answers to each at temperature 1; a greedy one is shown beside

# [broker]
# prefix = "headwater."            # one prefix serves one learner
# partitions = 4
# replication = 1
# retention_bytes = 21474836480    # of the broker that `up` starts: older answers go first (prompts and rewards stay)
# min_free_bytes = 1073741824      # with less left on the broker's disk nothing is admitted

# [storage]
# url = "s3://bucket/runs"         # weights and checkpoints, where all machines of a run reach them (any URL that
                                   # fsspec knows; credentials come from the environment); absent: the run directory
"""


def template(file: str, name: str) -> str:
    """The text for a file of that name and a run of that name."""
    return TEMPLATE.format(file=file, name=name)
