"""States of the explorer as a problem, a Python program and a command line.

A state is text by name: the options of ``replica curve``, where ``alpha`` is the grid of the
learning curve; ``at``, the alpha of the one point that everything else is shown of; and ``view``,
which figure that is.  It comes from a browser's address, so it is refused like what is typed, and
never names code to import.
"""

import shlex
from collections.abc import Mapping, Sequence

from ..cli import Options, Request, parse_grid, parse_request, single_number
from ..errors import InvalidArgument
from ..problem import is_import_path

State = Mapping[str, str]
DEFAULTS = {
    "student": "tanh", "target": "sin", "theory": "network", "readout": "equal", "loss": "square",
    "alpha0": "20", "eta": "3", "steps": "", "beta": "1", "noise": "0", "bias": "0", "lam": "0.1",
    "alpha": "0.1:4:40", "at": "1", "view": "learning curve",
}  # fmt: skip


def request_of(state: State) -> Request:
    """Problem of a state, with one value of everything but alpha; code to import is refused."""
    for option, text in state.items():
        if is_import_path(text):
            raise InvalidArgument(option, text, "no code to import, which is for the command line")
    state_request = parse_request(options_of(state))
    state_request.refuse_grids()
    single_number("lam", state_request.lam)
    number_of(state, "at")
    return state_request


def number_of(state: State, name: str) -> float:
    """A number of a state, by its name."""
    return single_number(name, parse_grid(name, state[name]))


def options_of(state: State, *, without: Sequence[str] = ()) -> Options:
    """The options of ``replica curve``, as typed, without those that have their own values."""
    options_left_out = {"at", "view", *without}
    options_left_out |= {"alpha0", "eta"} if state["steps"].strip() else {"steps"}
    defaults = {"theory": "srf", "readout": "equal", "loss": "square", "noise": "0", "bias": "0"}
    options_left_out |= {option for option, text in defaults.items() if state.get(option) == text}
    return {option: text for option, text in state.items() if option not in options_left_out}


def command(program: str, options: Options) -> str:
    """Command line of the options; a value that begins with a minus is joined to its option."""
    command_words = program.split()
    for option, text in options.items():
        command_words += [f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text]
    return shlex.join(command_words)


def grid_code(text: str) -> str:
    """The Python of a grid as typed.

    >>> grid_code("0.1:4:40"), grid_code("1:10:3:log"), grid_code("1,2")
    ('np.linspace(0.1, 4.0, 40)', 'np.geomspace(1.0, 10.0, 3)', '[1.0, 2.0]')
    """
    if ":" not in text:
        return repr([float(typed_number) for typed_number in text.split(",")])
    low, high, count, *is_log = text.split(":")
    return f"np.{'geomspace' if is_log else 'linspace'}({float(low)}, {float(high)}, {int(count)})"


def coarse(text: str, most: int) -> str:
    """A grid as typed, of ``most`` values where it has a count of more.

    >>> coarse("0.1:4:40", 24), coarse("1:10:3:log", 24), coarse("1,2", 24)
    ('0.1:4:24', '1:10:3:log', '1,2')
    """
    if ":" not in text:
        return text
    grid_start, grid_stop, grid_count, *is_log = text.split(":")
    return ":".join([grid_start, grid_stop, str(min(int(grid_count), most)), *is_log])


def python(state: State, lines: Sequence[str], drawn: str, picture: str) -> str:
    """Program that makes the model of a state, runs the lines, and saves a picture of the variable
    ``drawn``: a curve, or a result with a plot of its own."""
    plot_code = f"{drawn}.plot()"
    if drawn == "curve":
        lines, plot_code = [*lines, "from replica.plotting import plot_curve"], "plot_curve(curve)"
    program_lines = [
        "import replica",
        "",
        f"model = replica.{request_of(state).single_model()!r}",
        *lines,
        f"{plot_code}.figure.savefig({picture + '.png'!r})",
    ]
    program_text = "\n".join(program_lines) + "\n"
    return f"import numpy as np\n{program_text}" if "np." in program_text else program_text


def point_code(state: State) -> list[str]:
    """The lines that solve the one point."""
    point_alpha, point_lam = number_of(state, "at"), number_of(state, "lam")
    return [
        f"point = replica.solve(model, alpha={point_alpha}, lam={point_lam}{loss_code(state)})",
        "print(point.test_error)",
    ]


def loss_code(state: State) -> str:
    """The argument that names a loss other than the square."""
    return f", loss={state['loss']!r}" if "loss" in options_of(state) else ""
