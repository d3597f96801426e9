"""What becomes of children, as a decision: back-off, deadlines, and the words for it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polyver.compositions.runtimes.process._restarts import (
    Ending,
    FailureCount,
    Life,
    Timing,
    ended,
    outlook,
)

TIMES = st.floats(min_value=0, max_value=1e6)


def test_a_function_that_crashes_at_once_is_started_less_and_less_often() -> None:
    timing, tries, delays = Timing(), FailureCount(), []
    for _ in range(10):
        tries = tries.after(0.5, timing)
        delays.append(timing.restarts.delay(tries.failures, spread=0))
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_after_a_good_while_a_crash_is_the_first_one() -> None:
    timing = Timing()
    assert FailureCount(9).after(timing.stable, timing) == FailureCount(1)


@given(TIMES, TIMES, TIMES)
def test_a_child_is_overdue_only_before_its_first_answer_and_hangs_only_after(
    started: float, answered: float, now: float
) -> None:
    timing = Timing()
    assert outlook(Life(started), timing, now) in ("wait", "overdue")
    assert outlook(Life(started, answered), timing, now) in ("serve", "hung")


@given(st.lists(st.booleans(), max_size=50))
def test_a_child_that_answers_now_and_then_does_not_hang(answers: list[bool]) -> None:
    timing = Timing(silence=30, ask_every=10)
    life, silent = Life(0, answered=0), 0
    for number, is_heard in enumerate(answers, start=1):
        life = life.heard("" if is_heard else "no answer", now=10.0 * number)
        silent = 0 if is_heard else silent + 1
        expected = "hung" if silent >= 3 else "serve"
        assert outlook(life, timing, 10.0 * number) == expected


def test_each_end_has_its_word() -> None:
    timing, gone = Timing(start=60, silence=30), Ending(-9)
    assert ended(Life(0), "overdue", gone, timing, again=1).reason == "NotStarting"
    assert ended(Life(0, 1, "deadline"), "hung", gone, timing, again=1).reason == "NotAnswering"
    crashed = ended(Life(0, 1), "serve", Ending(1, said="a\nb\n"), timing, again=8)
    assert crashed.reason == "Crashed"
    assert crashed.message == (
        "it ended with exit code 1; it is started again in 8 s; its last lines:\na\nb"
    )


@given(st.integers(-64, 255), st.text(max_size=80))
def test_any_end_can_be_told_in_a_few_words(code: int, said: str) -> None:
    assert len(str(Ending(code, said=said * 20))) < 1000
