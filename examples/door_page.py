"""The compliant door as a page that runs by itself, and the page of a run of it.

Run it with ``python examples/door_page.py``. It writes ``door.html``, in which sliders move the
hinge, the target and the controller, and ``door_run.html``, which begins with a run that was made
here. Open them in any browser; they need nothing else. From the command line, without a script::

    flexure page examples/door_page.py --to 10
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import flexure as fx
from examples.compliant_door import build

#: What has sliders at hand.
CHOSEN = [
    *("door.hinge.spring_constant", "door.hinge.dynamic_friction_torque"),
    *("door.hinge.catch_torque", "target.to", "pid.kp", "pid.ki", "pid.kd", "door.axis.angle"),
]
#: How numbers are shown.
DEGREES = {"rad": "deg"}


def main() -> None:
    """Write both pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where to save the pages")
    folder = parser.parse_args().folder
    servo = build()
    title, file = "A compliant door", folder / "door.html"
    page = fx.page(servo, 10.0, parameters=CHOSEN, units=DEGREES, title=title, path=file)
    print(f"saved {file}: {page}")
    assert page.live, "the door does not run in its page"
    assert page.size < 6e6, "the page is large"

    context = servo.create_default_context()
    context.set("pid.kp", 110.0)
    result = fx.simulate(servo, 10.0, context=context)
    file = folder / "door_run.html"
    result.page(file, parameters=CHOSEN, units=DEGREES, title="A stiffer servo")
    print(f"saved {file}: overshoot ", end="")
    print(f"{result.step_info('door.axis.angle').overshoot:.2f} %")


if __name__ == "__main__":
    main()
