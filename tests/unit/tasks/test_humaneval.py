"""HumanEval as a domain: the whole set, in the form that its own checker would run."""

from schemas import Purpose, Sampling
from schemas.codec import decode, encode
from schemas.topics import prompts_topic
from tasks.domains.humaneval import HUMANEVAL, problems


def test_all_problems_are_there_and_fit_the_contract() -> None:
    found = list(problems())
    assert len(found) == 164
    assert [problem.task_id for problem in found] == [f"HumanEval/{number}" for number in range(164)]
    topic = prompts_topic(HUMANEVAL.name)
    for problem in HUMANEVAL.problems():
        prompt = problem.prompt(
            prompt_id=problem.id,
            domain=HUMANEVAL.name,
            purpose=Purpose.TRAIN,
            group_size=4,
            sampling=Sampling(),
            deadline_seconds=60.0,
        )
        assert decode(encode(prompt, topic), topic) == prompt


def test_helpers_that_the_prompt_gives_are_in_the_check_where_it_calls_them() -> None:
    helped = {p.entry_point: p.grader.program for p in problems() if p.grader.program != p.test}
    assert set(helped) == {"find_zero", "decode_cyclic", "decode_shift"}
    for entry_point, helper in (("find_zero", "poly"), ("decode_cyclic", "encode_cyclic")):
        namespace: dict[str, object] = {}
        exec(helped[entry_point], namespace)
        assert {helper, "check"} <= set(namespace)
        assert entry_point not in namespace


def test_the_canonical_answer_passes_its_own_check() -> None:
    problem = problems()[0]
    namespace: dict[str, object] = {}
    exec(problem.prompt + problem.canonical_solution + problem.test, namespace)
    namespace["check"](namespace[problem.entry_point])  # type: ignore[operator]
    assert problem.answer(problem.canonical_solution).count("```") == 2
