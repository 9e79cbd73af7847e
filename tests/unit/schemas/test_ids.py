"""Ids are pure functions of their input: known values, so that a change of the rule is seen."""

from schemas import PolicyVersion, TokenSpan
from schemas.ids import execution_id, group_id, prompt_id, rollout_digest, rollout_id
from schemas.tokens import pack_token_ids


def test_ids_keep_their_values_across_releases() -> None:
    group = group_id("run", "math", "p1", 0)
    assert group == "471cdafe96fe25111c203a482be8dd4d"
    assert rollout_id(group, 3) == f"{group}-3"
    assert prompt_id("log", "prompts.math", 0, 7) == "000be170146a4f819320ef8ccf1453d4"
    assert execution_id(rollout_id(group, 3), "digest") == "93b07a473e1e114750644a10acfd1719"


def test_every_part_of_an_identity_counts() -> None:
    ids = {
        group_id("run", "math", "p1", 0),
        group_id("run2", "math", "p1", 0),
        group_id("run", "code", "p1", 0),
        group_id("run", "math", "p2", 0),
        group_id("run", "math", "p1", 1),
        group_id("run", "mathp1", "", 0),
    }
    assert len(ids) == 6


def test_a_digest_tells_other_tokens_versions_and_texts_apart() -> None:
    def span(*ids: int, version: int = 1) -> TokenSpan:
        return TokenSpan(token_ids=pack_token_ids(ids), trainable=True, policy_version=PolicyVersion(1, version))

    digests = [
        rollout_digest((span(1, 2),), "a"),
        rollout_digest((span(1), span(2)), "a"),
        rollout_digest((span(1, 2, version=2),), "a"),
        rollout_digest((span(1, 3),), "a"),
        rollout_digest((span(1, 2),), "b"),
    ]
    assert len(set(digests)) == len(digests)
    assert rollout_digest((span(1, 2),), "a") == digests[0]
