"""All words of the command line; nothing slow is imported for them."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from typing import Any, NoReturn

from flexure import __doc__ as summary, __version__
from flexure.commands.arguments.call_texts import (
    DrawAction,
    assignment,
    axis,
    calls,
    names,
    number,
    span,
    tolerance,
)
from flexure.solvers.integration.methods.methods import METHOD_NAMES

_EPILOG = """\
exit codes: 0 done; 1 an error of the model or the library; 2 words that are not understood;
3 done with findings (of the doctor, or runs of a sweep that failed); 130 interrupted

examples:
  flexure run door.py --to 10 --set pid.kp=80 --plot door.axis.angle,pid.u
  flexure sweep door.py --to 10 --grid pid.kp=20:100:9 --metrics 'overshoot(door.axis.angle)'
  flexure draw door.py --format mermaid
  flexure COMMAND --help"""
SHELLS = ("bash", "zsh", "fish")
FORMATS = ("svg", "png", "pdf", "dot", "mermaid")
METHODS = ("auto", *METHOD_NAMES)


class Parser(ArgumentParser):
    """A parser that says in a line what it does not understand."""

    def error(self, message: str) -> NoReturn:
        """Say it, and end with the code 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="flexure",
        description=summary,
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"flexure {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, function: str, about: str, *groups: Any) -> None:
        made = commands.add_parser(
            name, help=about, description=f"{about[0].upper()}{about[1:]}.", allow_abbrev=False
        )
        for group in groups:
            group(made)
        made.add_argument("--debug", action="store_true", help="show the traceback of an error")
        made.set_defaults(function=function)  # its file, and its name there

    about = "simulate a model and print its final values"
    command("run", "run.run", about, _model, _run, _integration, _output)
    about = "simulate a model many times"
    command("sweep", "sweep.run", about, _model, _sweep, _integration, _output)
    about = "make the linear model around a point"
    command("linearize", "linearize.linear_model", about, _model, _linearize, _output)
    about = "find natural frequencies, damping and shapes"
    command("modes", "linearize.find_modes", about, _model, _modes, _output)
    command("draw", "written_files.draw", "draw the diagram of a model", _model, _draw, _output)
    about = "write a model as a page that runs by itself"
    command("page", "written_files.write_page", about, _model, _page, _output)
    command(
        "export", "written_files.export", "write a model for other tools", _model, _export, _output
    )
    about = "write a block without states as a page"
    command("inspect", "written_files.inspect", about, _model, _inspect, _output)
    about = "write a model, or a run of it, as a page to send or to print"
    command("report", "written_files.write_report", about, _model, _report, _integration, _output)
    about = "look into the installation, or into a model"
    command("doctor", "doctor.run", about, _patient, _output)
    about = "print the script that completes words in a shell"
    command("completion", "completion.run", about, _completion)
    return parser


def _model(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a Python file with a function build() that returns a system, or a system and a "
        "context of it; file.py:name for another function",
    )
    _values(parser)


def _values(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("values")
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=assignment,
        metavar="PATH=VALUE",
        help="set a parameter, an initial state or a free input; arrays as 1,2,3 and matrices as "
        "1,2;3,4; may be repeated",
    )
    group.add_argument(
        "--params",
        action="append",
        default=[],
        metavar="FILE",
        help='set values from a TOML file with lines such as "pid.kp" = 80',
    )
    group.add_argument(
        "--context", metavar="FILE", help="begin with a saved context, such as context.json of run"
    )


def _run(parser: ArgumentParser) -> None:
    _to(parser)
    parser.add_argument(
        "--signals",
        type=names,
        metavar="SIGNALS",
        help="signals to print and to keep, separated by commas; by default, outputs of the "
        "system, signals on its wires, or the states are printed, and --out keeps all",
    )
    _metrics(parser)
    parser.add_argument(
        "--plot",
        nargs="?",
        const=[],
        type=names,
        metavar="SIGNALS",
        help="save a plot of these signals, or of the printed ones",
    )


def _sweep(parser: ArgumentParser) -> None:
    _to(parser)
    group = parser.add_argument_group(
        "plan", "Every value of one option meets every value of the others."
    )
    group.add_argument(
        "--grid",
        action="append",
        default=[],
        type=axis,
        metavar="PATH=LOW:HIGH:COUNT",
        help="values at equal distances, LOW:HIGH:COUNT:log at equal ratios, or 1,2,5; may be "
        "repeated",
    )
    for name, about in (
        ("random", "independent samples"),
        ("latin", "a Latin hypercube"),
        ("sobol", "points of a Sobol sequence"),
    ):
        group.add_argument(
            f"--{name}",
            nargs="+",
            action=DrawAction,
            default=[],
            metavar=("NUMBER", "PATH=DISTRIBUTION"),
            help=f"{about}, of uniform(low,high), normal(mean,sd), another distribution of "
            "scipy.stats, or a tolerance as 5%%; put MODEL first",
        )
    group.add_argument(
        "--plan", action="append", default=[], metavar="FILE", help="a saved plan, .npz or .csv"
    )
    group.add_argument("--seed", type=int, default=0, metavar="NUMBER", help="of samples")
    _metrics(parser)
    parser.add_argument(
        "--signals",
        type=names,
        metavar="SIGNALS",
        help="what to keep with --out or --json, at 1001 times, and to measure by bare names",
    )
    parser.add_argument("--threads", type=int, metavar="NUMBER", help="how many to use")
    parser.add_argument("--workers", type=int, metavar="NUMBER", help="how many processes to use")
    parser.add_argument(
        "--store",
        metavar="FILE",
        help="keep finished runs in a file, and go on where it ends; fx.load_study reads it",
    )
    parser.add_argument(
        "--force", action="store_true", help="discard the runs of another study in --store"
    )
    parser.add_argument("--progress", action="store_true", help="show how many runs are done")


def _to(parser: ArgumentParser, otherwise: str = "") -> None:
    parser.add_argument(
        "--to",
        required=not otherwise,
        type=number,
        metavar="TIME",
        help=f"end of a run in seconds{otherwise}",
    )


def _metrics(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        type=calls,
        default=[],
        metavar="METRICS",
        help="what to measure, separated by commas: step metrics, as overshoot or "
        "overshoot(door.axis.angle), and metrics of fx.metrics, as rms(pid.u,start=1)",
    )


def _integration(parser: ArgumentParser) -> None:
    """Add the options of `flexure.Simulator`, under their names."""
    group = parser.add_argument_group("integration")
    group.add_argument("--method", metavar="METHOD", help=f"{', '.join(METHODS)}")
    group.add_argument("--rtol", type=tolerance, metavar="RTOL", help="relative tolerance")
    group.add_argument("--atol", type=tolerance, metavar="ATOL", help="absolute tolerance")
    group.add_argument("--step", type=number, metavar="TIME", help="of fixed-step methods")
    group.add_argument("--max-step", type=number, metavar="TIME", help="longest step")
    group.add_argument("--max-steps", type=number, metavar="NUMBER", help="when to give up")
    group.add_argument(
        "--max-check-interval",
        type=number,
        metavar="TIME",
        help="longest time between two evaluations of witness functions",
    )
    group.add_argument(
        "--compiled", choices=("native", "python"), help="insist on native code, or do without"
    )


def integration_options(arguments: Any) -> dict[str, Any]:
    """Return the options of the integration that were given, as the library calls them."""
    options = ("method", "rtol", "atol", "step", "max_step", "max_steps", "max_check_interval")
    given = {name: getattr(arguments, name) for name in (*options, "compiled")}
    return {name: value for name, value in given.items() if value is not None}


def _point(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--equilibrium", action="store_true", help="go to the nearest equilibrium before"
    )


def _linearize(parser: ArgumentParser) -> None:
    for name, about in (
        ("inputs", "free inputs, parameters, or ports on wires; all inputs if omitted"),
        ("outputs", "ports; all outputs if omitted"),
        ("openings", "ports on wires that are opened"),
    ):
        parser.add_argument(f"--{name}", type=names, metavar="PATHS", help=about)
    parser.add_argument(
        "--period", type=number, metavar="TIME", help="of a model from sample to sample"
    )
    _point(parser)


def _modes(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--energies", action="store_true", help="tell the shares of bodies and elements, too"
    )
    parser.add_argument(
        "--plot", action="store_true", help="save a plot of frequencies and damping ratios"
    )
    _point(parser)


def _draw(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="svg",
        help="a picture in a file, or a text for Graphviz or Mermaid, which is printed unless a "
        "folder is named (default: svg)",
    )
    parser.add_argument(
        "--depth", type=int, default=1, metavar="NUMBER", help="levels of nested diagrams to show"
    )
    parser.add_argument(
        "--ports",
        choices=("used", "all"),
        default="used",
        help="fold ports that nothing uses into one line, or show all (default: used)",
    )


def _page(parser: ArgumentParser) -> None:
    _to(parser)
    parser.add_argument(
        "--parameters",
        type=names,
        metavar="PATHS",
        help="what has sliders at hand, separated by commas; a few of each block if omitted",
    )
    parser.add_argument(
        "--signals",
        type=names,
        metavar="SIGNALS",
        help="what the charts show, separated by commas; if omitted, what controllers compare "
        "and give, or what is on wires",
    )
    parser.add_argument(
        "--goals",
        type=names,
        default=(),
        metavar="GOALS",
        help="bounds of metrics, separated by commas, as 'overshoot < 5, least of leaf.safety > 2'",
    )
    _title(parser)


def _export(parser: ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--fmu", metavar="FILE", help="write a Functional Mock-up Unit (FMI)")
    parser.add_argument(
        "--fmi", choices=("2.0", "3.0"), default="2.0", help="version of FMI (default: 2.0)"
    )
    for name, about in (
        ("signals", "outputs; those of the system, or of all blocks, if omitted"),
        ("inputs", "free inputs that can be connected; all if omitted"),
        ("parameters", "parameters that can be set; all if omitted"),
    ):
        parser.add_argument(f"--{name}", type=names, metavar="PATHS", help=about)
    parser.add_argument(
        "--kinds",
        type=names,
        default=["me", "cs"],
        metavar="KINDS",
        help="me for Model Exchange, cs for Co-Simulation (default: me,cs)",
    )
    parser.add_argument(
        "--platforms",
        type=names,
        default=["linux"],
        metavar="PLATFORMS",
        help="linux, windows, macos, linux-arm or macos-arm, separated by commas (default: linux)",
    )


def _title(parser: ArgumentParser) -> None:
    parser.add_argument("--title", metavar="TEXT", help="what stands at the head of the page")


def _inspect(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--block", metavar="PATH", help="which block of the model; all of it if omitted"
    )
    parser.add_argument(
        "--measured",
        metavar="FILE",
        help="a CSV file with columns position, force and, maybe, rate, to be drawn below curves",
    )
    parser.add_argument(
        "--range",
        action="append",
        default=[],
        type=span,
        metavar="NAME=LOW:HIGH",
        help="from where to where curves are drawn at first, as angle=-0.1:1.6; may be repeated",
    )
    _title(parser)


def _report(parser: ArgumentParser) -> None:
    _to(parser, "; without it the report is about the model alone")
    parser.add_argument("--question", default="", metavar="TEXT", help="what was asked")
    parser.add_argument(
        "--signals",
        type=names,
        metavar="SIGNALS",
        help="what is shown of a run, separated by commas; if omitted, what controllers compare "
        "and give, or outputs",
    )
    _title(parser)


def _patient(parser: ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a model to check for implausible values"
    )
    _values(parser)


def _output(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="FOLDER", help="keep what was found as files in a folder")
    group.add_argument(
        "--json", action="store_true", help="print one JSON object; what is not finite is null"
    )


def _completion(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")
    parser.set_defaults(json=False, out=None)
