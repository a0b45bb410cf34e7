"""Options, help and failures that all commands share.

Results go to standard output, everything else to standard error.  Exit status: 0; 1 where a
point did not converge; 2 for bad input, with one line that names the option, its value and
what is allowed; 130 when interrupted.
"""

import atexit
import gc
import inspect
import logging
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate

import typer
from rich.markup import escape
from typer.core import TyperCommand

from solvers.quadrature import QuadratureError
from solvers.results import ConvergenceError

from .. import __version__
from ..errors import OUR_NAMES, InvalidArgument, shorten
from ..files import file_and_name
from .option_table import (
    FLAGS,
    GIVEN_FILES,
    HELP,
    OF_PROBLEMS,
    PANELS,
    Options,
    as_typed,
    read_config,
)
from .printing import PICTURES, Output, answers_only, say, with_options

OUTPUT_PANEL = "Files and output"  # a panel of the help
TABLES = (".csv", ".json", ".tex")  # suffixes that --out writes, and with a data set:
DATASETS = (*TABLES, ".nc")
TimeLimit = Annotated[
    float,
    typer.Option(
        help="Seconds a point, after which it is flagged; where the best --lam or --eta is "
        "searched, seconds of the whole search of a point: take some hundreds at a --dimension or "
        "with --reuse."
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(help="What a finer quadrature, or finer strata, may change of a result."),
]


def file_name(text: str) -> Path:
    """Path of a file to write; a folder, which ends in a slash, is refused."""
    if text.endswith(("/", os.sep)):
        raise typer.BadParameter(f"a file is written there, and {text!r} is a folder")
    return Path(text)


def sides(text: str) -> list[str]:
    """Width and height as typed, which the style of figures checks."""
    return text.lower().split("x")


SIZE: dict[str, Any] = {"parser": sides, "metavar": "WxH"}
WRITTEN: dict[str, Any] = {"parser": file_name, "metavar": "PATH"}


def written(help_text: str) -> Any:
    """Option of a file to write."""
    return typer.Option(help=help_text, rich_help_panel=OUTPUT_PANEL, **WRITTEN)


def option(
    name: str, kind: Any, default: Any, help_text: str, panel: str = OUTPUT_PANEL, **how: Any
) -> Parameter:
    """Option --name of a command, as a parameter of a signature that typer reads."""
    flag_name = f"--{name.replace('_', '-')}"  # given, since of a flag typer's own adds a --no-flag
    option_annotation = Annotated[
        kind, typer.Option(flag_name, help=help_text, rich_help_panel=panel, **how)
    ]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option_annotation)


Command = Callable[Concatenate[Options, Output, ...], bool | None]


class Interrupted(Exception):
    """Ctrl-C in a command that says which of its results are stored."""


def command(
    *,
    offered: Sequence[str] = OF_PROBLEMS,
    without: Sequence[str] = (),
    files: Sequence[str] = TABLES,
    also: Sequence[Parameter] = (),
    drawn: bool = True,
    tabular: bool = True,
) -> Callable[[Command], Callable[..., None]]:
    """Decorator of a command: options of a problem, --config, and options of the output.

    The first two parameters of the command are Options, as typed or read from the file, and Output.
    It may return whether its answer is known completely, which decides on the exit status.

    Typer makes options of the parameters of a signature.  It is shown the options ``offered``, but
    for those ``without``; what the command ``also`` takes, by name or as ``**settings``; --out for
    the suffixes ``files``; --plot if a figure is ``drawn``; and --wide if the answer is
    ``tabular``.
    """
    own_options = {parameter.name for parameter in also}
    offers = [name for name in offered if name not in {*without, *own_options}]
    output_options = [
        option("config", Path | None, None, "TOML file of these options: replica init writes one."),
        option("allow_import", bool, False, "Let the TOML file name code, module:function."),
        option("out", Path | None, None, f"Save the points: {', '.join(files)}.", **WRITTEN),
        option("plot", Path | None, None, f"Save a figure: {', '.join(PICTURES)}.", **WRITTEN),
        option("size", Any, None, "Inches of the figure, 6x4; below 5 wide no title.", **SIZE),
        option("style", str | None, None, "paper: a figure of 3.4x2.6 inches, without a title."),
        option("json", bool, False, "Print the JSON document and nothing else."),
        option("wide", bool, False, "Show the whole table, all its columns and rows."),
    ]
    lacks = {"plot": not drawn, "size": not drawn, "style": not drawn, "wide": not tabular}
    last_options = [entry for entry in output_options if not lacks.get(entry.name)]

    def decorate(function: Command) -> Callable[..., None]:
        @wraps(function)
        def flat(*, config: Path | None, allow_import: bool, **given: Any) -> None:
            typed = {name: given.pop(name) for name in offers}
            options = as_typed({name: value for name, value in typed.items() if value is not None})
            output_names = "out", "plot", "json", "wide", "size", "style"
            output = Output(*(given.pop(name, None) for name in output_names))
            in_file = {} if config is None else read_config(config, allow_import=allow_import)
            options = in_file | options
            try:
                with answers_only():
                    with_files = [x for x in ("inputs", *GIVEN_FILES) if x in options]
                    read_files = [file_and_name(str(options[name]))[0] for name in with_files]
                    output.check(files, [*read_files, *([config] if config else [])])
                    answer_known = function(options, output, **given)
                    if unused := [name for name in in_file if name in HELP and name not in offers]:
                        say(f"note: {', '.join(unused)} of {config} play no part in this command")
            except SystemExit:
                raise RuntimeError("code that was named to be imported ended the program") from None
            if answer_known is not None and not answer_known:
                raise typer.Exit(1)

        _, _, *command_parameters = signature(function).parameters.values()
        left_out = {"settings", *own_options}
        others = [parameter for parameter in command_parameters if parameter.name not in left_out]
        flat.__signature__ = Signature([*map(_described, offers), *also, *others, *last_options])  # type: ignore[attr-defined]
        return flat

    return decorate


def _described(name: str) -> Parameter:
    """Option that describes a problem: text or, of a flag, a bool; None unless typed."""
    panel = next(title for title, panel_options in PANELS.items() if name in panel_options)
    return option(name, bool | None if name in FLAGS else str | None, None, HELP[name], panel)


class StderrHandler(logging.Handler):
    """Log handler that writes the library's messages to standard error; matplotlib's message on a
    missing font, which every text repeats, once."""

    fonts = False

    def emit(self, record: logging.LogRecord) -> None:
        level_word = "note" if record.levelno < logging.WARNING else record.levelname
        is_font_message = record.name == "matplotlib.font_manager"
        if not (is_font_message and self.fonts):
            say(f"{level_word}: {with_options(record.getMessage())}")
        self.fonts |= is_font_message


class OnceEach(TyperCommand):
    """Command that refuses an option given twice, of which click would take the last one
    silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Arguments that belong to no option."""
        if not ctx.resilient_parsing:
            _, _, typed_options = self.make_parser(ctx).parse_args(list(args))
            for option in typed_options:
                if typed_options.count(option) > 1 and option.param_type_name == "option":
                    raise InvalidArgument(str(option.name), None, "given once")
        return super().parse_args(ctx, args)


def application(name: str, text: str, commands: Sequence[Callable[..., None]]) -> typer.Typer:
    """A program of ``commands``, with --version and tab completion.

    The section Examples in the docstring of a command is the end of its help.
    """
    app = typer.Typer(name=name, no_args_is_help=True, help=text)

    @app.callback(invoke_without_command=True)
    def _version(
        version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    ) -> None:
        """Print the version and leave."""
        if version:
            typer.echo(__version__)
            raise typer.Exit

    for function in commands:
        command_help, _, command_examples = inspect.cleandoc(function.__doc__ or "").partition(
            "\n\nExamples\n--------\n"
        )
        example_lines = [" ".join(line.split()) for line in command_examples.split("\n\n")]
        # brackets are no markup: E[y|x], .[explore]
        epilog = "\n\n".join(["Examples:", *example_lines])
        app.command(cls=OnceEach, help=escape(command_help), epilog=epilog)(function)
    return app


def run(application: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; an error is printed as one line.

    With the variable REPLICA_TRACEBACK set, unexpected errors are raised instead.
    """
    # What may be meant by a command or an option that there is not.
    other_commands = (
        OUR_NAMES
        | dict.fromkeys(GIVEN_FILES, "replica readout")
        | dict.fromkeys(("simulate", "compare", "figure", "seeds"), "replica-validate")
        | {name: f"replica {name}" for name in ("curve", "readout", "bounds", "optimum", "plan")}
        | {"probe": "replica readout", "accuracy": "--reach of replica readout, an error"}
        | dict.fromkeys(("classification_error", "test_error"), "--reach of replica readout")
    )
    if sys.stdout is None:
        return _fail("standard output must be open: answers are written to it", 2)
    if sys.stderr is None:  # closed: nobody is told
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os.environ.pop("MPLBACKEND", None)  # pictures are files, which no window's library draws
    atexit.register(gc.freeze)  # else a tenth of a short command is a search for garbage
    logging.basicConfig(handlers=[StderrHandler()], level=logging.WARNING)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: files are swept
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # by ``interrupts``
        signal.signal(signal.SIGINT, signal.default_int_handler)
    usage_error: Any = typer.BadParameter.__base__  # the same class in every typer
    try:
        with warnings.catch_warnings():
            # Overflows and the like: results are judged by their residuals, not by these.
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.showwarning = lambda message, *_: say(f"WARNING: {message}")
            exit_status = application(args=arguments, standalone_mode=False)
        if exit_status == 130:  # how some versions of typer report Ctrl-C
            raise KeyboardInterrupt
        return exit_status if isinstance(exit_status, int) else 0
    except InvalidArgument as error:
        flag_text = f"--{error.name.replace('_', '-')}" if error.name.isidentifier() else error.name
        typed_value = str(error.value) or repr(error.value)
        got_text = "" if error.value is None else f", got {shorten(typed_value)}"
        return _fail(f"{flag_text} must be {error.allowed}{got_text}", 2)
    except usage_error as error:
        message = error.format_message() or "a command is missing"
        bad_word = re.match(r"No such (?:command|option):? '?(?:--)?([\w-]+)", message)
        name = bad_word[1].replace("-", "_") if bad_word else ""
        hint = other_commands.get(name)
        python_hint = f"in Python {hint}" if hint and "(" in hint else ""
        if name in OF_PROBLEMS and error.ctx is not None:
            flag_text = f"--{name.replace('_', '-')} in {error.ctx.command.name}"
            is_replica = application.info.name == "replica"
            taken_by = "replica curve" if is_replica else "replica-validate compare"
            way_on = f"({taken_by} takes it){'; ' * bool(python_hint)}{python_hint}"
            return _fail(f"No such option: {flag_text}: leave it out {way_on}", 2)
        hint = python_hint or hint
        return _fail(message + f" (did you mean {hint}?)" * bool(hint), 2)
    except QuadratureError as error:
        return _fail(with_options(str(error)), 2)
    except ConvergenceError as error:
        return _fail(with_options(str(error)), 1)
    except OSError as error:
        return _fail(f"{error.filename or 'output'}: {error.strerror or error}", 2)
    except MemoryError as error:
        return _fail(f"this takes more memory than there is ({error}): ask for less at once", 1)
    except SystemExit as error:  # how typer ends where it completes words
        return error.code if isinstance(error.code, int) else 0
    except Interrupted as error:
        return _fail(str(error), 130)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted; no file was left half-written", 130)
    except Exception as error:
        if "REPLICA_TRACEBACK" in os.environ:
            raise
        return _fail(
            f"{type(error).__name__}: {error} (a fault of the program, or of code it was given: "
            "REPLICA_TRACEBACK=1 before the same line shows where)",
            1,
        )


def _fail(error_line: str, exit_status: int) -> int:
    """Write the message to standard error as one line, and return the exit status."""
    say(f"error: {error_line}")
    return exit_status
