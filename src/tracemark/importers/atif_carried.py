"""What an ATIF document carries of an earlier stay in a store: the root's `extra.tracemark`.

It is believed as far as it can be checked: its members must have the shapes that are stored, and a stamp must name the
trajectory that it was made for; of another trajectory's, the observed digests are dropped and the rest is claimed. What
is not understood stays in the document, where it does no harm.

A document as an export wrote it is *whole*: it carries everything that is known of its trace, and names the trajectory
that it holds. Nothing beside it, and nothing that it shows by itself, adds to that. An edit of its steps shows; one of
`extra.tracemark` itself does not, so what it says is worth what the one who hands it over is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracemark import digest
from tracemark.importers.strict import carried_faults, worded


@dataclass(frozen=True, slots=True)
class Carried:
    """What was taken out of a document."""

    run: dict[str, Any] | None = None
    """Run facts; None when none were carried."""
    outcome: dict[str, Any] | None = None
    """The outcome; None when none was carried."""
    stamp: dict[str, Any] | None = None
    """The stamp as carried; None when none was."""
    trajectory: str | None = None
    """Id of the trace that the stamp belongs to; None when not named."""
    repairs: tuple[str, ...] = ()
    """Why something was not used."""
    further: tuple[dict[str, Any], ...] = ()
    """Statements (`run`, `outcome`, `harness`, as far as each says something) that disagree with the first."""
    decided: bool = False
    """Whether the stamp is what people decided where the document was exported."""
    fault: str | None = None
    """What is wrong with `extra.tracemark`, which then is not used; None when nothing is."""

    def is_whole(self, trajectory: bytes) -> bool:
        """Return whether a document with this trajectory carries all that an export writes, for this very one."""
        said = self.run is not None and self.outcome is not None and self.stamp is not None
        return said and self.trajectory is not None and self.trajectory == digest.sha256(trajectory)

    def stamp_for(self, trajectory: bytes, repairs: list[str]) -> dict[str, Any] | None:
        """Return the stamp as far as it holds for the trajectory; None when none was carried.

        Args:
            trajectory: canonical bytes of the trajectory as read now.
            repairs: gets a note when the stamp was made for another trajectory and its evidence fell.
        """
        if not self.stamp or self.trajectory == digest.sha256(trajectory):
            return self.stamp
        repairs.append("the carried stamp was not made for this trajectory: its evidence counts as claimed")
        return _lowered(self.stamp)

    def further_lowered(self) -> tuple[dict[str, Any], ...]:
        """Return the further statements, for a document that is not as an export wrote it."""
        stamps = ({"harness": _lowered(said["harness"])} if "harness" in said else {} for said in self.further)
        return tuple({**said, **stamp} for said, stamp in zip(self.further, stamps, strict=True))


def take(document: dict[str, Any]) -> Carried:
    """Remove `extra.tracemark` from `document` and return what it said.

    An `extra` that holds nothing else is removed with it, unless it is marked as empty from the start. Something of
    another shape is left where it is, with a note.
    """
    extra = document.get("extra")
    if not isinstance(extra, dict) or "tracemark" not in extra:
        return Carried()
    carried = extra["tracemark"]
    found = carried_faults(carried)
    if found:
        notes = ("extra.tracemark has not the shape of an export: left in place, not used",)
        return Carried(repairs=notes, fault=f"extra.tracemark is not used: {worded(found)}")
    _put_back(document, extra, carried)
    return Carried(
        run=carried.get("run"),
        outcome=carried.get("outcome"),
        stamp=carried.get("harness"),
        trajectory=carried.get("trajectory"),
        further=tuple(carried.get("further", ())),
        decided="decided" in carried,
    )


def _put_back(document: dict[str, Any], extra: dict[str, Any], carried: dict[str, Any]) -> None:
    """Make the root's `extra` what it was before the export."""
    del extra["tracemark"]
    if carried.get("original") in extra:
        extra["tracemark"] = extra.pop(carried["original"])
    elif not extra and carried.get("null_extra"):
        document["extra"] = None
    elif not extra and not carried.get("empty_extra"):
        del document["extra"]


def _lowered(stamp: dict[str, Any]) -> dict[str, Any]:
    # most documents carry no stamp, and what its values are made of is slow to import
    from tracemark.model.stamp import lowered  # noqa: PLC0415

    # what was seen of another content is not seen here; where the two disagreed with the harness stays a warning
    kept = {name: value for name, value in stamp.items() if name != "observed"}
    declared = kept.get("declared")
    if not declared:
        return kept
    return {**kept, "declared": {**declared, "components": lowered(declared["components"])}}
