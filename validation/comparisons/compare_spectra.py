"""Outliers of simulated spectra beside the theory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from replica.spectra import Spectrum
from solvers.results import Array

from ..run import standard_error


def outliers_of(predicted_spectrum: Spectrum, simulated_eigenvalues: Array) -> list[dict[str, Any]]:
    """The outliers of a spectrum and of simulated eigenvalues (draws, p), from the largest on.

    Of each the position in theory; ``largest``, the mean over all draws of the eigenvalue of the
    same rank, with ``largest_stderr``; ``draws``, the number of draws in which this is above the
    ``threshold``, and its mean over those alone, ``simulated`` with ``stderr``, which is too large
    where they are not all.  NaN where there is none.
    """
    width = simulated_eigenvalues.shape[1]
    seen = predicted_spectrum.outliers_among(simulated_eigenvalues)
    theory_positions = np.sort(predicted_spectrum.outliers_at(width))[::-1]
    descending = np.sort(simulated_eigenvalues)[:, ::-1]
    outlier_rows = []
    for k in range(max(len(theory_positions), seen.shape[1])):
        peaks = seen[np.isfinite(seen[:, k]), k] if k < seen.shape[1] else np.empty(0)
        outlier_rows.append(
            {
                "theory": theory_positions[k] if k < len(theory_positions) else np.nan,
                "largest": descending[:, k].mean(),
                "largest_stderr": float(standard_error(descending[:, k])),
                "simulated": peaks.mean() if peaks.size else np.nan,
                "stderr": float(standard_error(peaks)),
                "draws": peaks.size,
                "threshold": predicted_spectrum.outlier_threshold(width),
            }
        )
    return outlier_rows


def outlier_text(row: Mapping[str, Any], rank: int, seeds: int) -> str:
    """Sentence on one of the rows of ``outliers_of``, of a ``rank`` from 1 on."""

    def mean_text(name: str, stderr: str, draws: int) -> str:
        # two or three draws know no standard error
        return f"{row[name]:.4g}" + f" ± {row[stderr]:.2g} (standard error)" * (draws >= 4)

    clear = f"{row['draws']} of {seeds} draws"
    threshold = f"clear of the bulk (above {row['threshold']:.4g})"
    if np.isnan(row["theory"]):
        where = mean_text("simulated", "stderr", row["draws"])
        return (
            f"outlier: theory none, simulated at {where} in the {clear} that have one {threshold}"
        )
    which = "largest eigenvalue" if rank == 1 else f"eigenvalue {rank} from the largest on"
    all_draws = mean_text("largest", "largest_stderr", seeds)
    return (
        f"outlier: theory at {row['theory']:.4g}, simulated {which} at {all_draws}, the mean over "
        f"all draws; {threshold} in {clear}"
    )
