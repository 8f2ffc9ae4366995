"""Plans: which rows they have, how they are cut, joined and kept, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import flexure as fx
from flexure.diagrams.checks.errors import UnknownNameError, ValueRefusedError
from tests.support.tiers import for_each

NUMBERS = st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=4)
TABLES = st.dictionaries(st.sampled_from(["a.k", "b.m", "c.x[rate]"]), NUMBERS, min_size=1)
SAMPLERS = [fx.plans.latin_hypercube, fx.plans.sobol, fx.plans.random]
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda f: f.__name__)
every_kind = pytest.mark.parametrize("kind", [".npz", ".csv"])


def renamed(plan: fx.plans.Plan) -> fx.plans.Plan:
    """The same rows under other paths."""
    return fx.plans.zipped({f"other.{path}": column for path, column in plan.columns().items()})


# Rows ---------------------------------------------------------------------------------------------


@given(TABLES)
def test_a_grid_has_all_combinations_with_the_last_path_fastest(values: dict[str, Any]) -> None:
    plan = fx.plans.grid(values)
    expected = [dict(zip(values, row, strict=True)) for row in itertools.product(*values.values())]
    assert list(plan) == expected
    assert plan.shape == tuple(map(len, values.values()))
    assert plan.dims == plan.paths == tuple(values)
    for path, (dim, levels) in plan.coordinates.items():
        assert (dim, levels.tolist()) == (path, values[path])
        assert plan[path].tolist() == plan.columns()[path].tolist() == [r[path] for r in expected]


def test_the_columns_of_a_grid_take_its_shape() -> None:
    plan = fx.plans.grid({"a": [1.0, 2.0], "b": [3.0, 4.0, 5.0]})
    a, b = np.meshgrid([1.0, 2.0], [3.0, 4.0, 5.0], indexing="ij")
    np.testing.assert_array_equal(plan["a"].reshape(plan.shape), a)
    np.testing.assert_array_equal(plan["b"].reshape(plan.shape), b)


@pytest.mark.full
@given(TABLES, TABLES)
def test_a_product_pairs_all_rows_and_a_union_has_one_after_the_other(
    some: dict[str, Any], more: dict[str, Any]
) -> None:
    one, other = fx.plans.grid(some), renamed(fx.plans.grid(more))
    product = one * other
    assert len(product) == len(one) * len(other)
    assert list(product) == [a | b for a in one for b in other]
    assert product.shape == (*one.shape, len(other))
    assert list(one + one[::-1]) == [*one, *reversed(list(one))]


def test_samples_times_samples_have_a_dimension_each() -> None:
    plan = (
        fx.plans.zipped({"a": [1.0, 2.0]})
        * fx.plans.zipped({"b": [3.0, 4.0]})
        * fx.plans.grid({"c": [5.0]})
    )
    assert plan.dims == ("sample", "sample_2", "c")
    assert plan.coordinates["b"][0] == "sample_2"


@given(TABLES, st.data())
def test_a_part_of_a_plan_has_these_rows_of_it(values: dict[str, Any], data: Any) -> None:
    plan = fx.plans.grid(values)
    rows = list(plan)
    bounds = st.none() | st.integers(-5, 70)
    part = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, 2, -1])))
    assert list(plan[part]) == rows[part]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    assert list(plan[mask]) == [row for row, wanted in zip(rows, mask, strict=True) if wanted]
    chosen = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=5))
    assert list(plan[chosen]) == [rows[k] for k in chosen]
    assert plan[-1] == rows[-1]


def test_values_with_a_shape_stay_whole_and_are_cut_only_for_other_programs() -> None:
    pandas = pytest.importorskip("pandas")
    plan = fx.plans.grid({"arm.x": [[0.0, 1.0], [2.0, 3.0]], "arm.A": [np.eye(2)], "pid.kp": [5.0]})
    assert plan["arm.x"].shape == (2, 2)
    assert plan["arm.A"].shape == (2, 2, 2)
    frame = plan.to_pandas()
    matrix = [f"arm.A[{i},{j}]" for i, j in itertools.product(range(2), repeat=2)]
    assert list(frame.columns) == ["arm.x[0]", "arm.x[1]", *matrix, "pid.kp"]
    assert frame.index.equals(pandas.RangeIndex(2, name="run"))
    assert frame["arm.x[1]"].tolist() == [1.0, 3.0]


def test_a_plan_shows_its_size_and_ranges_and_as_a_table_its_rows() -> None:
    plan = fx.plans.grid({"a": [1.0, 2.0], "b": [0.5]})
    assert repr(plan) == "<Plan of 2 samples, 2 x 1; a from 1 to 2, b = 0.5>"
    assert plan.table()["a"] == [1.0, 2.0]
    assert plan.table().columns == ("a", "b")


def test_plans_are_equal_when_rows_and_dimensions_are_and_cannot_be_changed() -> None:
    values = {"a": [1.0, 2.0], "b": [3.0]}
    assert fx.plans.grid(values) == fx.plans.grid(values) != fx.plans.grid({**values, "b": [3.5]})
    assert fx.plans.grid(values) != fx.plans.grid(values)[:]
    with pytest.raises(ValueError, match="read-only"):
        fx.plans.grid(values)["a"][0] = 7.0
    numbers = np.array([1.0, 2.0])
    plan = fx.plans.zipped({"a": numbers})
    numbers[0] = 7.0
    assert plan["a"].tolist() == [1.0, 2.0]


# Samples ------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(n=st.integers(1, 60), seed=st.integers(0, 2**32), rho=st.sampled_from([None, -0.7, 0.9]))
def test_each_stratum_of_a_latin_hypercube_is_met_once(
    n: int, seed: int, rho: float | None
) -> None:
    pair = None if rho is None else {("a", "c"): rho}
    values = {"a": (0.0, 1.0), "b": stats.norm(3.0, 0.2), "c": stats.lognorm(0.5)}
    plan = fx.plans.latin_hypercube(values, n, seed=seed, correlation=pair)
    points = [plan["a"], stats.norm(3.0, 0.2).cdf(plan["b"]), stats.lognorm(0.5).cdf(plan["c"])]
    for point in points:
        # Distribution functions round, so what lies on the edge of a stratum may leave it.
        strata = np.sort(point) * n - np.arange(n)
        assert np.all((strata > -1e-9) & (strata < 1.0 + 1e-9))


@every_sampler
def test_samples_have_the_distributions_and_correlations_that_were_asked_for(
    sampler: Callable[..., fx.plans.Plan],
) -> None:
    mean, cov = [1.0, -2.0], [[0.04, 0.03], [0.03, 0.09]]
    law = {"k": stats.norm(3.0, 0.2), "m": (1.0, 2.0), "n": stats.gamma(2.0), "o": stats.norm()}
    joint: dict[Any, Any] = {("x", "y"): stats.multivariate_normal(mean, cov)}
    matrix = [[1.0, 0.5, -0.3], [0.5, 1.0, 0.0], [-0.3, 0.0, 1.0]]
    correlation = {("k", "m", "o"): matrix}
    plan = sampler(law | joint, 4096, correlation=correlation, seed=3)
    uniform = {
        "k": stats.norm(3.0, 0.2).cdf(plan["k"]),
        "m": plan["m"] - 1.0,
        "n": stats.gamma(2.0).cdf(plan["n"]),
        "x": stats.norm(1.0, 0.2).cdf(plan["x"]),
        "y": stats.norm(-2.0, 0.3).cdf(plan["y"]),
    }
    for points in uniform.values():
        assert stats.kstest(points, "uniform").pvalue > 1e-3
    scatter = 4.0 / math.sqrt(4096)
    assert np.corrcoef(plan["k"], plan["o"])[0, 1] == pytest.approx(-0.3, rel=0.0, abs=scatter)
    # Of a uniform and a normal variable: 2 sin(π r/6) of ranks, r = 6/π asin(ρ/2).
    ranks = stats.spearmanr(plan["k"], plan["m"]).statistic
    assert ranks == pytest.approx(6.0 / math.pi * math.asin(0.25), rel=0.0, abs=scatter)
    assert np.corrcoef(plan["n"], plan["k"])[0, 1] == pytest.approx(0.0, rel=0.0, abs=scatter)
    assert np.cov(plan["x"], plan["y"]) == pytest.approx(np.array(cov), rel=0.0, abs=6e-3)


@every_sampler
def test_one_seed_gives_one_plan_and_another_one_another(
    sampler: Callable[..., fx.plans.Plan],
) -> None:
    values = {"a": (0.0, 1.0), "b": stats.norm()}
    plan = sampler(values, 16, seed=7)
    assert plan == sampler(values, 16, seed=7) == sampler(values, 16, seed=np.random.default_rng(7))
    assert plan != sampler(values, 16, seed=8)
    assert sampler(values, 16) == sampler(values, 16)


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (fx.plans.latin_hypercube, [0.510243381, 0.0041319089, 0.4533175598, 0.9781888943]),
        (fx.plans.random, [0.6369616873, 0.2697867138, 0.0409735239, 0.0165276355]),
    ],
    ids=["latin_hypercube", "random"],
)
def test_the_numbers_of_a_seed_are_the_same_everywhere(sampler: Any, expected: Any) -> None:
    assert sampler({"a": (0.0, 1.0)}, 4)["a"] == pytest.approx(expected, abs=1e-10)


def test_sobol_points_are_those_of_scipy() -> None:
    plan = fx.plans.sobol({"a": (0.0, 2.0), "b": (0.0, 1.0)}, 8, scramble=False)
    points = stats.qmc.Sobol(2, scramble=False).random_base2(3)
    np.testing.assert_array_equal(plan["a"], 2.0 * points[:, 0])
    np.testing.assert_array_equal(plan["b"], points[:, 1])


def test_sobol_points_that_are_no_power_of_two_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="10 Sobol points are not balanced.* use 8 or 16"):
        assert len(fx.plans.sobol({"a": (0.0, 1.0)}, 10)) == 10


@every_sampler
def test_tolerances_are_around_the_nominal_values_of_a_context(
    sampler: Callable[..., fx.plans.Plan],
) -> None:
    plant = fx.StateSpace("plant", [[-1.0, 2.0], [-4.0, -0.5]], [1.0, 2.0], [1.0, 1.0])
    context = plant.create_default_context()
    context.set("A[1,0]", -8.0)
    for tolerance in (0.05, "5 %", "± 5%"):
        plan = sampler(["A", "B[1,0]"], 512, plus_minus=tolerance, context=context)
        share = np.ptp(plan["A"], axis=0) / (2.0 * np.abs(context.get("A")))
        assert share == pytest.approx(0.05, rel=0.05)
        assert np.mean(plan["A"], axis=0) == pytest.approx(context.get("A"), rel=0.01)
        assert np.all(np.abs(plan["B[1,0]"] - 2.0) <= 0.1)
    mixed = sampler({"A[1,0]": "10 %", "u": (0.0, 1.0)}, 64, context=plant)
    assert np.all(np.abs(mixed["A[1,0]"] + 4.0) <= 0.4)


@pytest.mark.skipif(not hasattr(stats, "Normal"), reason="this SciPy has no such distributions")
def test_the_newer_distributions_of_scipy_serve_as_well() -> None:
    new = fx.plans.random({"a": stats.Normal(mu=3.0, sigma=0.2)}, 50)["a"]
    assert new == pytest.approx(fx.plans.random({"a": stats.norm(3.0, 0.2)}, 50)["a"])


# Files --------------------------------------------------------------------------------------------


@pytest.mark.full
@every_kind
@given(values=TABLES)
def test_a_plan_comes_back_from_its_file_and_gives_the_same_file_again(
    kind: str, values: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("plans")
    first, second = folder / f"first{kind}", folder / f"second{kind}"
    plan = fx.plans.grid(values)
    plan.save(first)
    loaded = fx.plans.load_plan(first)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert loaded == (plan if kind == ".npz" else plan[:])


@every_kind
def test_a_plan_of_arrays_comes_back_as_far_as_the_file_can_say(kind: str, tmp_path: Path) -> None:
    plan = fx.plans.zipped({"arm.x": [[0.1, 1e-300], [0.3, 1e300]]}) * fx.plans.grid(
        {"k": [1.0, 2.0]}
    )
    plan.save(tmp_path / f"plan{kind}")
    loaded = fx.plans.load_plan(tmp_path / f"plan{kind}")
    if kind == ".npz":
        assert loaded == plan
    else:
        assert loaded["arm.x[1]"].tolist() == plan["arm.x"][:, 1].tolist()
        assert loaded.paths == ("arm.x[0]", "arm.x[1]", "k")
    plan[:0].save(tmp_path / f"plan{kind}")
    assert len(fx.plans.load_plan(tmp_path / f"plan{kind}")) == 0


CONTENTS = {
    "nothing": b"",
    "noise": bytes(range(256)),
    "texts": b"a,b\n1,two\n",
    "a ragged table": b"a,b\n1,2\n3\n",
    "columns of one name": b"a,a\n1,2\n",
    "numbers alone, one row of too many": b"a\n1,2\n",
}


@every_kind
@pytest.mark.parametrize("content", CONTENTS)
def test_files_that_hold_no_plan_are_refused_with_their_name(
    kind: str, content: str, tmp_path: Path
) -> None:
    file = tmp_path / f"foreign{kind}"
    file.write_bytes(CONTENTS[content])
    with pytest.raises(ValueRefusedError, match=f"Cannot load a plan from .*foreign{kind}"):
        fx.plans.load_plan(file)


@pytest.mark.parametrize("left", [10, 100, 300])
def test_a_damaged_file_is_refused(left: int, tmp_path: Path) -> None:
    file = tmp_path / "plan.npz"
    fx.plans.grid({"a": [1.0, 2.0], "b": [3.0]}).save(file)
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(ValueRefusedError, match="Cannot load a plan"):
        fx.plans.load_plan(file)


def test_a_plan_comes_from_the_table_of_a_study(tmp_path: Path) -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    context = lag.create_default_context()
    context.set("u", 1.0)
    plan = fx.plans.grid({"time_constant": [0.5, 1.0], "gain": [0.0, 0.2, 0.4]})
    options: dict[str, Any] = {"context": context, "metrics": {"end": fx.metrics.final("y")}}
    study = fx.sweep(lag, plan, 0.3, **options)
    for kind in ("mat", "parquet"):
        if kind == "parquet":
            pytest.importorskip("pyarrow")
        file = tmp_path / f"study.{kind}"
        getattr(study, f"to_{kind}")(file)
        again = fx.plans.load_plan(file, ["time_constant", "gain"])
        assert again.paths == ("time_constant", "gain")
        found = fx.sweep(lag, again, 0.3, **options)
        assert np.array_equal(found.metrics["end"], study.metrics["end"])
        with pytest.raises(ValueRefusedError, match="time_constant") as caught:
            fx.plans.load_plan(file, ["time_constants"])
        assert "Did you mean" in str(caught.value)
        file.write_bytes(b"noise")
        with pytest.raises(ValueRefusedError, match="Cannot load a plan"):
            fx.plans.load_plan(file)


def test_columns_that_are_not_used_may_have_texts(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text('gain,status,tau\n1,"late, but done",3\n2,failed,4\n')
    plan = fx.plans.load_plan(file, ["tau", "gain"])
    assert plan.paths == ("gain", "tau")
    assert plan["tau"].tolist() == [3.0, 4.0]
    for paths, text in (
        (None, "late"),
        (["status"], "late"),
        (["taus"], "'tau'"),
        ("tau", "paths"),
    ):
        with pytest.raises(ValueRefusedError, match=text):
            fx.plans.load_plan(file, paths)


# Sweeps of plans ----------------------------------------------------------------------------------


def test_a_sweep_of_a_plan_is_that_of_its_columns() -> None:
    lag = fx.FirstOrderLag("lag", 1.0)
    plan = fx.plans.grid({"time_constant": [0.5, 1.0, 2.0], "u": [1.0, 2.0]})
    swept = fx.sweep(lag, plan, 1.0)
    taus, inputs = swept.values["time_constant"], swept.values["u"][:, 0]
    np.testing.assert_array_equal(taus, plan["time_constant"])
    exact = inputs * (1.0 - np.exp(-1.0 / taus))
    assert swept.final_states[:, 0] == pytest.approx(exact, rel=1e-3)
    mapped = fx.sweep(lag, plan.columns(), 1.0)
    np.testing.assert_array_equal(swept.final_states, mapped.final_states)


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "no values": (lambda: fx.plans.grid({}), ValueRefusedError, "at least one array"),
    "no mapping": (lambda: fx.plans.grid([1.0]), ValueRefusedError, "a mapping"),  # type: ignore[arg-type]
    "a scalar": (lambda: fx.plans.grid({"a": 3.0}), ValueRefusedError, "'a'.*in the context"),
    "lengths": (
        lambda: fx.plans.zipped({"a": [1.0], "b": [1.0, 2.0]}),
        ValueRefusedError,
        "1 values of 'a', 2 values of 'b'",
    ),
    "a grid beyond all machines": (
        lambda: fx.plans.grid({f"p{k}": np.arange(1000.0) for k in range(5)}),
        ValueRefusedError,
        "1000 x 1000 .*latin_hypercube",
    ),
    "a product of the same": (
        lambda: fx.plans.grid({"a": [1.0]}) * fx.plans.grid({"a": [2.0]}),
        ValueRefusedError,
        "'a' in both.*a \\+ b",
    ),
    "a union of others": (
        lambda: fx.plans.grid({"a": [1.0]}) + fx.plans.grid({"b": [2.0]}),
        ValueRefusedError,
        "both vary 'a'; found 'b'.*a \\* b",
    ),
    "an unknown column": (
        lambda: fx.plans.grid({"kpp": [1.0]})["kp"],
        UnknownNameError,
        "mean 'kpp'",
    ),
    "rows beyond the end": (
        lambda: fx.plans.grid({"a": [1.0]})[[1]],
        ValueRefusedError,
        "its 1 rows",
    ),
    "a mask of another length": (
        lambda: fx.plans.grid({"a": [1.0]})[np.array([True, False])],
        ValueRefusedError,
        "truth value for each",
    ),
    "no samples": (
        lambda: fx.plans.random({"a": (0.0, 1.0)}, 0),
        ValueRefusedError,
        "num_samples to be an int",
    ),
    "a reversed interval": (
        lambda: fx.plans.random({"a": (1.0, 0.0)}, 2),
        ValueRefusedError,
        r"for 'a': .*\(1, 0\)",
    ),
    "no distribution": (
        lambda: fx.plans.sobol({"a": "x"}, 2),
        ValueRefusedError,
        "'a'.*a tolerance",
    ),
    "an unfrozen distribution": (
        lambda: fx.plans.sobol({"a": stats.gamma}, 2),
        ValueRefusedError,
        "'a'.*all of its parameters",
    ),
    "an infinite sample": (
        lambda: fx.plans.sobol({"a": stats.norm()}, 2, scramble=False),
        ValueRefusedError,
        "'a'.*-inf in the sample at index 0",
    ),
    "a tolerance of zero": (
        lambda: fx.plans.random("x", 2, plus_minus="5 %", context=fx.FirstOrderLag("lag", 1.0)),
        ValueRefusedError,
        "'x': .*without zeros.*interval itself",
    ),
    "a tolerance of nothing": (
        lambda: fx.plans.random("a", 2, plus_minus="5 %"),
        ValueRefusedError,
        "context=",
    ),
    "a list without a tolerance": (
        lambda: fx.plans.random(["a"], 2),
        ValueRefusedError,
        "plus_minus=",
    ),
    "correlations that contradict": (
        lambda: fx.plans.random(
            {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)},
            2,
            correlation={("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): -0.9},
        ),
        ValueRefusedError,
        "positive definite",
    ),
    "a correlation of a stranger": (
        lambda: fx.plans.random({"a": (0.0, 1.0)}, 2, correlation={("a", "z"): 0.5}),
        ValueRefusedError,
        "found 'z'",
    ),
    "a path twice": (
        lambda: fx.plans.random(
            {"a": (0.0, 1.0), ("a", "b"): stats.multivariate_normal([0.0, 0.0])}, 2
        ),
        ValueRefusedError,
        "'a' more than once",
    ),
    "another end of a name": (
        lambda: fx.plans.grid({"a": [1.0]}).save("plan.txt"),
        ValueRefusedError,
        "'.npz', '.csv'",
    ),
}


@for_each("case", REFUSED)
def test_what_makes_no_plan_is_refused_with_what_to_do(case: str) -> None:
    call, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        call()


def test_a_plan_without_samples_shows_no_ranges() -> None:
    plan = fx.plans.grid({"u": [1.0, 2.0]})
    assert ">u from 1 to 2</p>" in str(plan._repr_html_())
    assert '"note"></p>' not in str(plan[:0]._repr_html_())
