"""What is kept for the next question, until it needs more room than there is."""

from __future__ import annotations

import copy
import pickle

from flexure.diagrams.concurrency.threads import Kept


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    kept = Kept(10)
    for name in "abc":
        kept.put(name, name.upper(), 3)
    assert kept.find("a") == "A"
    kept.put("d", "D", 4)
    assert [kept.find(name) for name in "abcd"] == ["A", None, "C", "D"]
    kept.put("e", "E", 10)
    assert [kept.find(name) for name in "abcde"] == [None, None, None, None, "E"]


def test_what_is_larger_than_all_the_room_is_not_kept_and_takes_none() -> None:
    kept = Kept(10)
    kept.put("small", 1, 6)
    kept.put("large", 2, 11)
    assert (kept.find("small"), kept.find("large")) == (1, None)
    kept.put("small", 3, 11)
    assert kept.find("small") is None
    kept.put("small", 4, 10)
    assert kept.find("small") == 4


def test_what_takes_the_place_of_another_takes_its_room() -> None:
    kept = Kept(10)
    kept.put("first", 1, 4)
    for size in (6, 2, 6, 5):
        kept.put("second", size, size)
        assert (kept.find("first"), kept.find("second")) == (1, size)


def test_a_copy_is_empty_and_has_the_same_room() -> None:
    kept = Kept(10)
    kept.put("a", lambda: None, 10)
    for twin in (copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert twin.find("a") is None
        twin.put("b", 1, 10)
        twin.put("c", 1, 11)
        assert (twin.find("b"), twin.find("c")) == (1, None)
