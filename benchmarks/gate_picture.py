"""The picture of how often gates err, out of the table that `simulate_gates.py` makes.

The same table gives the same bytes: texts stay texts, names of parts come from a fixed word, and no date is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(table: Sequence[Mapping[str, str]], path: Path, level: float, drawn_from: str) -> None:
    """Write the picture of a table: how often each policy promotes, by the true gain, one panel a number of attempts.

    Args:
        table: its rows, as `simulate_gates.py` makes them.
        path: the SVG file.
        level: the level of `significant`, a line across.
        drawn_from: name and digest of the table, for the picture's description.
    """
    from matplotlib import style  # noqa: PLC0415 - heavy, and only a picture needs it
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415 - as above
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    numbers = list(dict.fromkeys(row["attempts"] for row in table))
    # what a user has set for pictures of their own must not change this one
    settings = {"svg.fonttype": "none", "svg.hashsalt": "gates", "font.family": "sans-serif", "font.size": 9}
    with style.context(["default", settings]):
        figure = Figure(figsize=(3.2 * len(numbers), 3.9), layout="constrained", facecolor="white")
        FigureCanvasSVG(figure)
        panels = figure.subplots(1, len(numbers), sharey=True, squeeze=False)[0]
        for panel, number in zip(panels, numbers, strict=True):
            _panel(panel, [row for row in table if row["attempts"] == number], level)
        panels[0].set_ylabel("promoted, % of all evaluations")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        described = {"Title": "How often a gate promotes", "Description": drawn_from}
        figure.savefig(path, metadata={"Date": None, "Creator": None, **described})


def _panel(panel: Axes, table: Sequence[Mapping[str, str]], level: float) -> None:
    number = table[0]["attempts"]
    panel.set_title(f"{number} attempt{'s' if number != '1' else ''} a task")
    for policy, colour in (("cotrace", "#b35806"), ("significant", "#2166ac")):
        for spread, line, mark in (("all", "-", "o"), ("few", "--", "s")):
            shown = [row for row in table if row["spread"] in {"same", spread}]
            gains = [float(row["gain"]) for row in shown]
            shares = [100 * float(row[policy]) for row in shown]
            where = {"all": "every task a little better", "few": "a few tasks repaired"}[spread]
            panel.plot(gains, shares, line, marker=mark, markersize=4, color=colour, label=f"{policy}, {where}")
    panel.axhline(100 * level, color="#777777", linewidth=0.8, linestyle=":", label=f"{100 * level:g} %")
    panel.set_xticks(sorted({float(row["gain"]) for row in table}))
    panel.set_ylim(0, 103)
    panel.set_xlabel(f"truly better by … of {table[0]['tasks']} tasks")
    panel.grid(visible=True, color="#e6e6e6", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
