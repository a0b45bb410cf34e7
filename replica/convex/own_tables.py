"""Tables of a point's own, of a loss with kinks or bends: panels over kappa, and over tau where
labels have little noise, that close in on the layers of the solution."""

from functools import cache

from solvers.results import Array

from ..equivalence import tabulate
from ..problem import Model
from ..saddle_point import Overlaps, responses_of
from .field_of_overlaps import field_on
from .label_tables import LabelTable, Level, Source, first_level, label_table_at, within
from .layers import fields_at, fields_on_grid, kinks_of, layers_near, panels
from .losses import Loss
from .tau_layers import Line, line, plateaus, sharp, tangencies, tau_rules, usual_size

# Of every level, nodes a panel over kappa, and over tau where it has layers, and how fast panels
# close in: differently on the next, as ends that tables have in common would hide what they miss.
KAPPA = (
    *((4, 0.75), (6, 0.45), (8, 0.5), (11, 0.45), (15, 0.5), (21, 0.45), (29, 0.5), (40, 0.45)),
    *((56, 0.5), (80, 0.45)),
)
TAU = ((5, 0.9), (7, 0.7), (8, 0.75), (9, 0.7), (11, 0.75), (14, 0.7), (18, 0.75), (23, 0.7))
BLUR = 1.0  # of a bend


def has_layers(model: Model, loss: Loss) -> bool:
    """Whether points may have tables of their own."""
    return bool(loss.kinks or loss.bends) and model.geometry.r.shape[1] == 1


def own_label_tables(model: Model, loss: Loss, overlaps: Overlaps) -> Source:
    """The tables for a point near ``overlaps``, by their level; None past the last."""
    blur = 0.0 if loss.kinks else BLUR * loss.width
    layers = layers_near(model, overlaps, kinks_of(loss, model.labels.binary), blur)
    split = sharp(model, loss)
    if split:
        layers += _merging(model, loss, overlaps)
    # nodes over tau where nothing closes in: those of several directions grow fast enough
    more = first_level(model).tau + (0 if len(model.geometry.gamma) == 1 else -1)

    @cache
    def table(level: Level) -> LabelTable | None:
        ahead = level.along("tau", by=more)
        if not (level.kappa < len(KAPPA) and level.tau < len(TAU) and within(model, ahead)):
            return None
        over_kappa, rules = tabulate(model, panels(model, layers, *KAPPA[level.kappa])), None
        if split:
            field = field_on(over_kappa, responses_of(over_kappa), overlaps)
            here = line(model, loss, over_kappa.kappa, field)
            rules = tau_rules(here, model.labels.gaussians, *TAU[level.tau])
        return label_table_at(model, over_kappa, ahead, rules)

    return table


def _merging(model: Model, loss: Loss, overlaps: Overlaps) -> list[tuple[float, float]]:
    """Layers in kappa where those in tau come and go, or pass a stretch of tau at once."""
    on_grid, field = fields_on_grid(model, overlaps)
    usual = usual_size(on_grid.kappa, field)

    def lines(kappa: Array) -> Line:
        table, field = fields_at(model, overlaps, kappa)
        return line(model, loss, table.kappa, field, usual)

    first = line(model, loss, on_grid.kappa, field, usual)
    return tangencies(first, lines) + plateaus(first, lines)
