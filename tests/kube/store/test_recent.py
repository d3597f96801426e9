"""What a store remembers of its entries is bounded."""

from __future__ import annotations

from polyver.kube.store import StoreEntry
from polyver.kube.store.sqlite import Recent


def test_what_nobody_asked_for_is_forgotten_first() -> None:
    recent = Recent(most=30)
    for number in range(3):
        recent.keep(StoreEntry(f"/{number}", b"x" * 10, number, number))
    assert recent.get("/0") is not None
    recent.keep(StoreEntry("/3", b"x" * 10, 3, 3))
    assert [recent.get(f"/{number}") is not None for number in range(4)] == [
        True,
        False,
        True,
        True,
    ]


def test_one_that_is_too_large_is_not_kept() -> None:
    recent = Recent(most=30)
    recent.keep(StoreEntry("/a", b"x" * 31, 1, 1))
    assert recent.get("/a") is None


def test_an_entry_is_not_kept_before_all_its_changes_are_done() -> None:
    recent = Recent()
    entry = StoreEntry("/a", b"x", 1, 1)
    recent.begin("/a")
    recent.begin("/a")
    recent.end("/a")
    recent.keep(entry)
    assert recent.get("/a") is None
    recent.end("/a")
    recent.keep(entry)
    assert recent.get("/a") == entry
