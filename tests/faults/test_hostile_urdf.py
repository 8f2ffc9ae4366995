"""Files of models from anywhere: refused by our errors, in time and memory that size bounds."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError, FlexureError
from tests.support.mechanics.robots import ARM
from tests.support.tiers import by_tier

pytest.importorskip("lxml", reason="URDF files are read with the package lxml")

ROOT = Path(__file__).resolve().parents[2]


def outcome_of(text: str, load: Callable[[str], fx.PlantBuilder] = fx.load_urdf) -> str:
    """Load a robot and evaluate its plant; tell how far that went."""
    stage = "refused"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            builder = load(text)
            stage = "loaded"
            plant = builder.build()
            context = plant.create_default_context()
            for port in plant.input_ports:
                port.fix(context, [0.0] * (port.size or 0))
            plant.eval_time_derivatives(context)
        except FlexureError:
            return stage
    return "evaluated"


# Any file ----------------------------------------------------------------------------------------

TOKENS = [
    *("1e999", "nan", "-inf", "1e300", "1e-320", "0", "-1", "", " ", "9" * 400, "0 0 0 0", "a b c"),
    *("1e200 0 0", "1e-200 0 0", "1 2 3", "0 0 1", "2", "world", "tree", "a.b", "é", "x" * 5000),
    *(
        "&a;",
        "&lt;",
        "<",
        "/>",
        "</robot>",
        "<link/>",
        "<!--",
        "<![CDATA[",
        "]]>",
        "<?x?>",
        '"',
        "'",
    ),
    *("planar", "ball", "screw", "<mimic/>", "drake:", 'name=""', '{u}x="1"', "loop_joint", "\x0b"),
]
VALUES = [found.span(1) for found in re.finditer('="([^"]*)"', ARM)]
PLACES = [found.span() for found in re.finditer(r'"[^"]*"|[\w:.]+|[<>/=]', ARM)]


def mutated(rng: random.Random) -> str:
    """Return the robot after a few changes."""
    text = ARM
    for _ in range(rng.choice([1, 1, 2])):
        places = rng.choice([VALUES, VALUES, PLACES])
        (first, last), (start, end) = rng.choice(places), rng.choice(places)
        text = rng.choice(
            [
                text[:first] + rng.choice(TOKENS) + text[last:],
                text[:first] + ARM[start:end] + text[last:],
                text[:first] + text[last:],
                "\n".join(line for line in text.split("\n") if rng.random() > 0.01),
                text[:last],
            ]
        )
    return text + "<" * ("<" not in text)


@pytest.mark.full
def test_mutated_robots_are_refused_by_our_errors() -> None:
    rng = random.Random(20)
    outcomes = [outcome_of(mutated(rng)) for _ in range(250)]
    assert outcome_of(ARM) == "evaluated"
    assert set(outcomes) >= {"refused", "evaluated"}
    assert outcomes.count("evaluated") > 10


SDF = (ROOT / "tests" / "oracle" / "models" / "crane.sdf").read_text(encoding="utf-8")


def test_mutated_models_are_refused_by_our_errors() -> None:
    rng = random.Random(5)
    words = [found.span(1) for found in re.finditer(r">([^<>]*[\w.][^<>]*)<|\"([^\"]*)\"", SDF)]
    words = [span for span in words if span != (-1, -1)]
    outcomes = []
    for _ in range(60):
        (first, last), (start, end) = rng.choice(words), rng.choice(words)
        put = rng.choice([*TOKENS, SDF[start:end], "0 0 0 0 0 0", "cart", "mast", "__model__"])
        outcomes.append(outcome_of(SDF[:first] + put + SDF[last:], fx.load_sdf))
    assert set(outcomes) >= {"refused", "evaluated"}


TAGS = ["link", "joint", "drake:joint", "transmission", "frame", "inertial", "origin", "axis"]
TAGS += ["limit", "dynamics", "parent", "child", "mass", "inertia", "type", "actuator"]
KEYS = ["name", "type", "link", "xyz", "rpy", "value", "lower", "upper", "damping", "ixx", "joint"]
WORDS = st.sampled_from([*TOKENS[:20], "revolute", "fixed", "floating", "a", "b"]) | st.text(
    st.characters(exclude_characters='<>&"'), max_size=8
)
ELEMENTS: st.SearchStrategy[str] = st.recursive(
    WORDS.filter(lambda word: "<" not in word),
    lambda inner: st.builds(
        lambda tag, keys, words, parts: (
            f"<{tag} "
            + " ".join(f'{key}="{word}"' for key, word in zip(sorted(keys), words, strict=False))
            + f">{''.join(parts)}</{tag}>"
        ),
        st.sampled_from(TAGS),
        st.sets(st.sampled_from(KEYS), max_size=4),
        st.lists(WORDS, min_size=4, max_size=4),
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@pytest.mark.full
@settings(max_examples=by_tier(fast=20, full=80))
@given(st.lists(ELEMENTS, max_size=5))
def test_any_elements_are_refused_by_our_errors(parts: list[str]) -> None:
    links = '<link name="a"/><link name="b"/>'
    outcome_of(f'<robot name="r">{links}{"".join(parts)}</robot>')


@given(st.text(max_size=60) | st.binary(max_size=60))
@settings(max_examples=by_tier(fast=15, full=60))
def test_any_text_is_refused_by_our_errors(text: str | bytes) -> None:
    with pytest.raises(DeclarationError):
        fx.load_urdf(text if isinstance(text, bytes) else text + "<")  # type: ignore[arg-type]


# Time and memory ---------------------------------------------------------------------------------

BOMBS = """
import resource, time
import flexure as fx
from flexure.diagrams.checks.errors import DeclarationError
laughs = "".join(f"<!ENTITY a{k} '{f'&a{k - 1};' * 10}'>" for k in range(1, 12))
laughs = f"<!DOCTYPE robot [<!ENTITY a0 'xxxxxxxxxx'>{laughs}]>"
many = "".join(f"<link name='l{k}'/>" for k in range(700_000))
links = "".join(f"<link name='{'l' * 1000}{k}'/>" for k in range(2_000))
spaces = " ".join(f"xmlns:a{k}='u{k}'" for k in range(2_000))
bombs = {
    "entities": f"{laughs}<robot name='r'><link name='&a11;'/></robot>",
    "entities in texts": f"{laughs}<robot name='r'><link name='l'>&a11;</link></robot>",
    "links": f"<robot name='r'>{many}</robot>",
    "depth": f"<robot name='r'>{'<a>' * 100_000}{'</a>' * 100_000}</robot>",
    "attributes": "<robot " + " ".join(f"a{k}='1'" for k in range(50_000)) + "/>",
    "names": f"<robot name='r'>{links}<frame name='f' link='{'l' * 1001}'/></robot>",
    "prefixes": f"<robot {spaces}>{'<link/>' * 5_000}</robot>",
    "numbers": f"<robot name='r'><frame name='f' link='world' xyz='{'1 ' * 500_000}'/></robot>",
}
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30,) * 2)
for name, text in bombs.items():
    begin = time.process_time()
    try:
        fx.load_urdf(text)
    except (DeclarationError, LookupError):
        print(name, time.process_time() - begin < 10.0)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of memory")
def test_bombs_are_refused_in_time() -> None:
    outcome = subprocess.run(
        [sys.executable, "-c", BOMBS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    lines = outcome.stdout.splitlines()
    assert len(lines) == 8, outcome.stderr
    assert all(line.endswith("True") for line in lines), lines


def test_the_greatest_number_of_elements_is_said() -> None:
    with pytest.raises(DeclarationError, match="at most 100000 elements; found 100001 of them"):
        fx.load_urdf(f"<robot name='r'>{'<link/>' * 100_001}</robot>")


def chain(count: int) -> str:
    """Return a robot whose links are in a row."""
    joint = "<joint name='j{}' type='revolute'><parent link='{}'/><child link='l{}'/></joint>"
    names = ["world", *(f"l{k}" for k in range(count))]
    parts = [f"<link name='{name}'/>" for name in names[1:]]
    parts += [joint.format(k, names[k], k) for k in range(count)]
    return f"<robot name='r'>{''.join(parts)}</robot>"


def calls_of(function: Callable[[], Any]) -> int:
    """Count the calls, also of built-in functions, that a function makes."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def test_work_grows_with_the_number_of_links_and_not_faster() -> None:
    counts = []
    for links in (60, 120):
        text = chain(links)
        counts.append(calls_of(lambda text=text: fx.load_urdf(text).build()))  # type: ignore[misc]
    assert counts[1] < 2.1 * counts[0]


def test_names_are_looked_up_and_not_copied() -> None:
    """Adding to a large plant takes no more memory than adding to a small one."""
    import tracemalloc

    peaks = []
    for count in (10, 1000):
        builder = fx.PlantBuilder("plant")
        for k in range(count):
            body = builder.add_body(f"b{k}", fx.SpatialInertia(1.0))
            builder.add_frame(f"f{k}", body)
        tracemalloc.start()
        builder.add_frame("frame", body)
        builder.add_joint(fx.WeldJoint("weld", builder.world, body))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 20_000
