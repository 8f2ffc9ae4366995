"""Contexts as JSON: every bit comes back, and what does not fit is refused."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flexure as fx
from flexure.diagrams.checks.errors import ContextFileError, FlexureError
from tests.support.systems.blocks import Constant, Gain, Lag, Optional, diagram_of, nested
from tests.support.tiers import for_each


class Everything(fx.LeafSystem):
    """One of everything that a context holds."""

    def __init__(self, name: str = "all") -> None:
        super().__init__(name)
        self.k = self.declare_numeric_parameter("k", np.zeros((2, 2)))
        self.limit = self.declare_numeric_parameter("limit", math.inf, allow_infinite=True)
        self.table = self.declare_abstract_parameter("table", None)
        self.x = self.declare_continuous_state(q=1, v=1)
        self.n = self.declare_discrete_state("n", [5.0, 6.0])
        self.mode = self.declare_abstract_state("mode", "idle")
        self.u = self.declare_vector_input("u", 2)
        self.message = self.declare_abstract_input("message")

    def calc_time_derivatives(self, context: Any) -> Any:
        return np.zeros(2)


def roundtrip(context: fx.Context, tmp_path: Path) -> fx.Context:
    """Save a context to a file and load it again, for the same system."""
    context.save(tmp_path / "context.json")
    return context.system.load_context(tmp_path / "context.json")


def rewritten(context: fx.Context, change: Callable[[Any], object]) -> Any:
    """Return the saved form of a context after a change, as it would be read from a file."""
    data = json.loads(json.dumps(context.to_dict()))
    change(data)
    return data


@pytest.fixture
def block() -> Everything:
    return Everything()


@pytest.fixture
def context(block: Everything) -> fx.Context:
    """A context two levels above the block, with values everywhere."""
    diagram = diagram_of(diagram_of(block, name="inner"), Lag("lag"), name="outer")
    context = diagram.create_default_context()
    rng = np.random.default_rng(1)
    context.time = rng.normal()
    context.accuracy = 1e-7
    context.continuous_state = rng.normal(size=3)
    block.k.set(context, rng.normal(size=(2, 2)))
    block.n.set(context, rng.normal(size=2))
    block.mode.set(context, "busy")
    context.set("inner.all.u", rng.normal(size=2))
    context.set("lag.u", 3.0)
    context.set("inner.all.message", {"text": "go"})
    return context


# Round trips -----------------------------------------------------------------------------------


def test_a_saved_context_comes_back_equal(context: fx.Context, tmp_path: Path) -> None:
    loaded = roundtrip(context, tmp_path)
    assert loaded == context
    assert loaded.is_root
    assert loaded.system is context.system
    assert loaded.to_dict() == context.to_dict()


def test_a_default_context_with_nothing_fixed_comes_back_equal(
    block: Everything, tmp_path: Path
) -> None:
    context = block.create_default_context()
    assert roundtrip(context, tmp_path) == context
    with pytest.raises(FlexureError, match="expected a connection or a fixed value"):
        block.u.eval(roundtrip(context, tmp_path))


@pytest.mark.full
def test_every_bit_of_every_number_comes_back(block: Everything, tmp_path: Path) -> None:
    context = block.create_default_context()
    rng = np.random.default_rng(2)
    edge_cases = [-0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1 + 0.2, 1 / 3]
    random_bits = [
        number
        for number in np.frombuffer(rng.bytes(8 * 200), dtype=np.float64)
        if np.isfinite(number)
    ]
    for number in [*edge_cases, *random_bits]:
        block.n.set(context, [number, -number])
        context.time = number
        loaded = roundtrip(context, tmp_path)
        assert block.n(loaded).tobytes() == block.n(context).tobytes()
        assert struct.pack("d", loaded.time) == struct.pack("d", number)


def test_infinite_parameters_come_back_and_the_file_is_strict_json(
    block: Everything, tmp_path: Path
) -> None:
    context = block.create_default_context()
    block.limit.set(context, -math.inf)
    loaded = roundtrip(context, tmp_path)
    assert block.limit(loaded) == -math.inf

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    json.loads((tmp_path / "context.json").read_text(), parse_constant=refuse)


ABSTRACT_VALUES: list[Any] = [
    None,
    True,
    "Übergang",
    12345678901234567890123,
    -0.0,
    math.inf,
    [1, [2.5, "x"], None],
    (1, (2, [3])),
    {"a": {"b": (1, [2])}, "array": [1], "float": "x", "dict": {}, "tuple": ()},
    np.arange(6, dtype=np.int16).reshape(2, 3),
    np.array([0.1, -0.0], dtype=np.float32),
    np.array([[True], [False]]),
    np.array(2.5),
    np.zeros((0, 3)),
    np.array([2**63], dtype=np.uint64),
    {"table": np.eye(2), "names": ["a", "b"]},
]


@pytest.mark.parametrize("value", ABSTRACT_VALUES, ids=repr)
def test_abstract_values_come_back_with_their_types(
    block: Everything, value: Any, tmp_path: Path
) -> None:
    context = block.create_default_context()
    block.mode.set(context, value)
    block.table.set(context, [value])
    block.message.fix(context, {"value": value})
    loaded = roundtrip(context, tmp_path)
    for found in (
        block.mode(loaded),
        block.table(loaded)[0],
        block.message.eval(loaded)["value"],
    ):
        assert type(found) is type(value)
        assert repr(found) == repr(value)
        if isinstance(value, np.ndarray):
            assert (found.dtype, found.shape) == (value.dtype, value.shape)


def test_nan_in_an_abstract_value_comes_back(block: Everything, tmp_path: Path) -> None:
    context = block.create_default_context()
    block.mode.set(context, [math.nan, np.array([math.nan, 1.0])])
    number, array = block.mode(roundtrip(context, tmp_path))
    assert math.isnan(number)
    np.testing.assert_array_equal(array, [math.nan, 1.0])


@pytest.mark.parametrize("value", [np.bool_(True), np.int64(3), np.float64(2.5)])
def test_numpy_scalars_come_back_as_python_numbers(
    block: Everything, value: Any, tmp_path: Path
) -> None:
    context = block.create_default_context()
    block.mode.set(context, value)
    found = block.mode(roundtrip(context, tmp_path))
    assert type(found) is type(value.item())
    assert found == value


def test_a_loaded_context_is_independent_of_the_file_data(context: fx.Context) -> None:
    data = context.to_dict()
    loaded = context.system.context_from_dict(data)
    data["blocks"]["inner.all"]["abstract"]["mode"] = "changed"
    data["inputs"].clear()
    assert loaded == context


def test_inputs_left_open_inside_of_a_diagram_come_back(tmp_path: Path) -> None:
    block = Optional("block")
    inner = nested(block, 2)
    builder = fx.DiagramBuilder("outer")
    builder.add_all(inner, Optional("other"), Constant("one"))
    builder.connect("one.y", "d2.u")
    builder.connect("d2.y", "other.u")
    context = builder.build().create_default_context()
    block.v.fix(context, 3.0)
    context.set("other.v", 4.0)
    assert set(context.to_dict()["inputs"]) == {"d2.v", "other.v"}
    loaded = roundtrip(context, tmp_path)
    assert loaded == context
    assert loaded.get("other.y") == 1.0 + 3.0 + 4.0


def test_an_input_that_was_fixed_to_none_comes_back(tmp_path: Path) -> None:
    block = Everything()
    context = block.create_default_context()
    block.message.fix(context, None)
    assert block.message.eval(roundtrip(context, tmp_path)) is None


def test_a_context_fits_the_same_diagram_wherever_it_is_nested(tmp_path: Path) -> None:
    alone = nested(Gain("gain"), 2)
    context = alone.create_default_context()
    context.set("d1.gain.k", 7.0)
    context.set("u", 3.0)
    context.save(tmp_path / "context.json")
    other = nested(Gain("gain"), 2)
    diagram_of(other, name="outer")
    loaded = other.load_context(tmp_path / "context.json")
    assert loaded.get("y") == 21.0
    assert loaded.to_dict() == context.to_dict()


def test_a_context_loads_into_another_instance_of_the_system(tmp_path: Path) -> None:
    one, two = Lag("lag"), Lag("lag")
    context = one.create_default_context()
    one.x.set(context, 0.1)
    context.save(tmp_path / "context.json")
    loaded = two.load_context(tmp_path / "context.json")
    assert two.x(loaded) == 0.1
    assert loaded != context


# Refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [{1: "a"}, {1, 2}, 1j, np.array([1j]), np.array(["a"]), object(), b"x", len]
)
def test_a_value_that_json_cannot_hold_is_refused_with_its_path_and_no_file_is_written(
    context: fx.Context, block: Everything, value: Any, tmp_path: Path
) -> None:
    block.mode.set(context, ["fine", value])
    with pytest.raises(ContextFileError) as caught:
        context.save(tmp_path / "context.json")
    assert str(caught.value) == (
        "Cannot save 'inner.all.mode': expected None, a boolean, number, string or array, or "
        "lists, tuples and string-keyed dictionaries of these; found "
        f"{type(value).__name__}."
    )
    assert list(tmp_path.iterdir()) == []


def set_in(*keys: Any, value: Any) -> Callable[[Any], None]:
    """Return a change of one entry of a saved context."""

    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


def without(*keys: Any) -> Callable[[Any], None]:
    """Return a change that takes one entry out of a saved context."""

    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        del data[keys[-1]]

    return change


ALL = ("blocks", "inner.all")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (set_in("format", value=2), "expected format 1; found 2"),
        (without("format"), "expected format 1; found None"),
        (set_in("blocks", "x", value={}), "expected blocks 'inner.all', 'lag'; found block 'x'"),
        (
            set_in("blocks", "lag", "gains", value={}),
            (
                "expected sections 'parameters', 'continuous_state', 'discrete_state', 'abstract'; "
                "found 'gains'"
            ),
        ),
        (
            set_in("blocks", "lag", "parameters", "k", value=1.0),
            "expected parameters 'tau' of 'lag'; found 'k'",
        ),
        (
            set_in(*ALL, "discrete_state", "x", value=1.0),
            "expected discrete_state 'n' of 'inner.all'; found 'x'",
        ),
        (
            set_in("inputs", "w", value=1.0),
            "expected free inputs 'inner.all.u', 'inner.all.message', 'lag.u'; found 'w'",
        ),
        (
            set_in("blocks", "lag", "parameters", "tau", value=-1.0),
            "Cannot set parameter 'lag.tau' [s]: expected values in (0, inf) s; found -1",
        ),
        (set_in("blocks", "lag", "parameters", "tau", value="1"), "expected a real number"),
        (
            set_in("blocks", "lag", "parameters", "tau", value={"float": "nan"}),
            "expected finite numbers; found nan",
        ),
        (set_in(*ALL, "discrete_state", "n", value=[1.0]), "expected a vector of size 2"),
        (set_in(*ALL, "abstract", "mode", value={"set": [1]}), "unknown object ['set']"),
        (set_in("inputs", "lag.u", value=[1.0, 2.0]), "expected a vector of size 1"),
        (set_in("time", value=None), "Cannot set the time"),
        (set_in("time", value={"float": "inf"}), "Cannot set the time"),
        (set_in("accuracy", value=-1.0), "Cannot set the accuracy"),
        (set_in("blocks", value=[1]), "found"),
        (set_in("blocks", "lag", value=3), "found"),
        (set_in("blocks", "lag", "parameters", value=3), "found"),
        (set_in("inputs", value=3), "found"),
        (
            set_in(*ALL, "parameters", "k", value={"array": [1.0], "shape": [2]}),
            "found no 'dtype'.",
        ),
        (
            set_in(*ALL, "parameters", "k", value={"array": [1], "shape": [2], "dtype": "int8"}),
            "found cannot reshape",
        ),
        (
            set_in(*ALL, "parameters", "k", value={"array": [1], "shape": [1], "dtype": "nope"}),
            "found",
        ),
        (without("time"), "found no 'time'."),
        (without("blocks"), "found no 'blocks'."),
        (without("inputs"), "found no 'inputs'."),
        (without("accuracy"), "found no 'accuracy'."),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    context: fx.Context, change: Callable[[Any], None], text: str
) -> None:
    before = context.clone()
    with pytest.raises(ContextFileError, match="Cannot load a context of 'outer'") as caught:
        context.system.context_from_dict(rewritten(context, change))
    assert text in str(caught.value)
    assert context == before


@for_each("data", [None, [], "text", 3])
def test_what_is_no_saved_context_is_refused(data: Any) -> None:
    with pytest.raises(ContextFileError, match="Cannot load a context of 'gain': expected format"):
        Gain("gain").context_from_dict(data)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00", '{"format": 1}'])
def test_an_unreadable_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_text(text)
    with pytest.raises(ContextFileError, match="Cannot load a context of 'gain'"):
        Gain("gain").load_context(path)


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ContextFileError, match=r"from '.*missing\.json': expected a readable JSON"):
        Gain("gain").load_context(tmp_path / "missing.json")


def test_a_binary_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "context.json"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(ContextFileError, match="Cannot load a context of 'gain'"):
        Gain("gain").load_context(path)
