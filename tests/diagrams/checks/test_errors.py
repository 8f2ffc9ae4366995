"""The tree of errors, the order of their texts, and the line of the user's call."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import flexure as fx
from flexure.diagrams.checks import errors
from flexure.diagrams.checks.arguments import require_known
from flexure.diagrams.checks.errors import (
    AlgebraicLoopError,
    FlexureError,
    SimulationError,
    UnknownNameError,
    ValueRefusedError,
    call_site,
    quoted,
    suggestion,
)
from tests.support.tiers import for_each

ALL = [getattr(fx.errors, name) for name in vars(fx.errors)["__all__"]]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_a_flexure_error_and_drawn_in_the_tree(kind: type[FlexureError]) -> None:
    assert issubclass(kind, FlexureError)
    assert errors.__doc__ is not None
    assert f" {kind.__name__} " in f" {' '.join(errors.__doc__.split())} "


def test_some_errors_are_also_the_builtin_ones() -> None:
    for name, builtin in [
        ("UnknownNameError", LookupError),
        ("ValueRefusedError", ValueError),
        ("MissingExtraError", ImportError),
    ]:
        assert issubclass(getattr(errors, name), builtin)


@for_each(
    ("parts", "text"),
    [
        ({}, "Cannot do it."),
        ({"expected": "this"}, "Cannot do it: expected this."),
        ({"found": "that"}, "Cannot do it: found that."),
        ({"expected": "this", "found": "that"}, "Cannot do it: expected this; found that."),
        ({"remedy": "Stop"}, "Cannot do it. Stop."),
        (
            {"expected": "this", "found": "that", "remedy": "Stop"},
            "Cannot do it: expected this; found that. Stop.",
        ),
    ],
)
@for_each("kind", ALL)
def test_the_text_says_attempt_expectation_finding_and_remedy(
    kind: type[FlexureError], parts: dict[str, str], text: str
) -> None:
    error = kind("Cannot do it", **parts)
    assert str(error) == text
    assert error.attempt == "Cannot do it"
    assert [error.expected, error.found, error.remedy] == [
        parts.get(name) for name in ("expected", "found", "remedy")
    ]


@pytest.mark.parametrize("duplicate", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_pickling_with_all_their_parts(duplicate: object) -> None:
    error = AlgebraicLoopError("Cannot build", expected="order", found="a loop", remedy="Break it")
    error.loop = ("a.u", "a.y")
    error.add_note("while testing")
    twin = duplicate(error)  # type: ignore[operator]
    assert type(twin) is AlgebraicLoopError
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_class_attributes_are_there_before_anybody_sets_them() -> None:
    assert AlgebraicLoopError("x").loop == ()
    assert SimulationError("x").time is None


def test_a_refused_value_can_be_caught_as_a_value_error() -> None:
    with pytest.raises(ValueError, match="Cannot set"):
        raise ValueRefusedError("Cannot set")


def test_lists_of_names_are_cut_and_say_how_much_is_left_out() -> None:
    assert quoted([]) == "none"
    assert quoted("abc") == "'a', 'b', 'c'"
    assert quoted(map(str, range(15)), limit=2) == "'0', '1' and 13 more"


def test_a_suggestion_names_the_closest_name_only_when_one_is_close() -> None:
    assert suggestion("angel", ["rate", "angle"]).startswith("Did you mean 'angle'? Valid names:")
    assert suggestion("zzz", ["rate"]) == "Valid names: 'rate'"


def test_the_call_site_is_this_line_of_this_file() -> None:
    here = call_site()
    file, line = here.split(":")
    assert file == Path(__file__).name
    assert "here = call_site()" in Path(__file__).read_text().splitlines()[int(line) - 1]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("slide.translaton", None),  # the beginning is common to all
        ("slide.translation", None),
        ("slide.dampng", "slide.damping"),
        ("slide.lock", "slide.locked"),
        ("slde.damping", "slide.damping"),
        ("plant.slide.dampin", "plant.slide.damping"),
        ("plant.slide.position", None),
    ],
)
def test_the_beginning_of_a_path_is_no_reason_for_a_guess(path: str, meant: str | None) -> None:
    names = ["slide.damping", "slide.locked", "slide.reaction", "slide.q", "slide.v"]
    names += [f"plant.{name}" for name in names]
    assert errors.closest(path, names) == meant


@pytest.mark.parametrize(("expected", "found"), [("a wheel", "'angel'"), (None, None)])
def test_a_name_that_is_not_known_is_refused_with_the_closest_one(
    expected: str | None, found: str | None
) -> None:
    require_known("angle", ["angle"], "Cannot turn")
    with pytest.raises(UnknownNameError, match="'angle'") as caught:
        require_known("angel", ["angle", "rate"], "Cannot turn", expected)
    assert (caught.value.expected, caught.value.found) == (expected, found)
