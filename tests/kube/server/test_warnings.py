"""Warnings of an answer: each once, and no more than kube-apiserver sends."""

from __future__ import annotations

from polyver.kube.server.call import Warnings


def warned(*texts: str) -> list[str]:
    warnings = Warnings()
    for text in texts:
        warnings.add(text)
    return list(warnings)


def test_each_is_sent_once_in_order() -> None:
    assert warned("b", "a", "b", "") == ["b", "a"]


def test_all_are_whole_if_they_fit() -> None:
    texts = ["x" * 4000, "y" * 96]
    assert warned(*texts) == texts


def test_more_than_fit_are_cut() -> None:
    assert warned("x" * 4000, "y" * 97) == ["x" * 256, "y" * 97]


def test_what_comes_after_the_limit_is_dropped() -> None:
    texts = [f"{number:08}" * 40 for number in range(200_000)]
    sent = warned(*texts)
    assert sent == [text[:256] for text in texts[:16]]


def test_the_one_that_reaches_the_limit_is_sent() -> None:
    assert len(warned(*(f"{number:04}" for number in range(5000)))) == 1025
