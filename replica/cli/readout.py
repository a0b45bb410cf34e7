"""``replica readout``: the errors of a readout of a given first layer, or of given features."""

from typing import Annotated, Any

import numpy as np
import typer

from solvers.resources import TIME_LIMIT

from ..given import TOLERANCE
from ..observables import learning_curve
from ..plotting import plot_curve
from .common import DATASETS, command
from .curve import TimeLimit
from .given import OF_BOTH, OF_FEATURES, OF_LAYERS, parse_given
from .options import Options
from .output import Output, say

Tolerance = Annotated[
    float, typer.Option(help="What finer strata may change of an error, relative to it.")
]


@command(offered=(*OF_LAYERS, *OF_FEATURES, *OF_BOTH), files=DATASETS)
def readout(
    options: Options,
    output: Output,
    *,
    quadrature_tol: Tolerance = TOLERANCE,
    time_limit: TimeLimit = TIME_LIMIT,
) -> None:
    """Errors of the readout of a first layer that you trained, or of features.

    Fresh samples train it: none that the first layer was trained on.  test_error is
    E (target - output)^2, of targets without noise (of features: of their labels); train_error the
    mean squared residual of the training labels.

    In Python: replica.FirstLayer, replica.FeatureSample and replica.learning_curve.

    Examples
    --------
    replica readout --weights W.npy --bias b.npy --student relu --target "z1 + z1*z2"
    --directions D.npy --samples 100:3000:12:log --lam 0.1 --plot readout.png

    replica readout --features F.npy --labels y.npy --samples 50,100,200 --lam 0.01,0.1
    --loss logistic
    """
    model, points, loss = parse_given(options)
    accuracy: dict[str, Any] = {"quadrature_tol": quadrature_tol, "time_limit": time_limit}
    dataset = learning_curve(model, **points, loss=loss, **accuracy)
    document = readout_document(dataset)

    def show() -> None:
        names = ("classification_error", "test_error", "train_error", "converged")
        known = [name for name in (*names, "loss_error", "train_loss") if name in dataset]
        output.table(document["points"], [*points, *known])

    output.write(document, show, figure=lambda: plot_curve(dataset).figure, dataset=dataset.squeeze)
    failed = [point["status"] for point in document["points"] if not point["converged"]]
    if failed:
        why = "; ".join(dict.fromkeys(failed))
        say(f"WARNING: {len(failed)} of {dataset.converged.size} points: {why}")
        raise typer.Exit(1)


def readout_document(dataset: Any) -> dict[str, Any]:
    """The JSON document of ``readout``."""
    axes = dataset.test_error.dims
    at = np.meshgrid(*(dataset[name].values for name in axes), indexing="ij")
    columns = dict(zip(axes, (x.ravel() for x in at), strict=True))
    columns |= {name: dataset[name].values.ravel() for name in dataset.data_vars}
    rows = zip(*columns.values(), strict=True)
    points = [dict(zip(columns, row, strict=True)) for row in rows]
    return {"layer": dict(dataset.attrs), "points": points}
