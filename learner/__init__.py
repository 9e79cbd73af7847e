"""The learner: from `trajectories` to a better policy on `weights`. Never imports `streams`."""
