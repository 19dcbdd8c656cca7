"""A finding is what the trials of one kind of experiment show together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from assay.errors import LookupFailed, MissingExtra
from assay.model import Doubt, TrialReport
from assay.plugin import lookup

if TYPE_CHECKING:
    from assay.model.page import ListItem, PageSection, RunOutcome, Tile


@runtime_checkable
class Finding(Protocol):
    """What an experiment adds to analysis and reports, beside the estimates that every trial has.

    A finding is looked up by the name of the experiment: the entry point `team` of the group `assay.findings` belongs to
    the trials of the experiment `team`. One with the name of an instrument belongs to the trials that have the
    instrument, and one that experiments name under `findings` to the trials of all of these. Analysis calls `adjust` for each of these trials, then `read` once with all of
    them. Reports ask the object that `read` returns for its document, its sections and the rest; they never ask what
    experiment it belongs to.

    Subclass it: only `read`, `document` and `sections` have to be written, everything else has a default. The class is
    imported only for runs that have such trials, and charts are built only for formats that draw them, so that other
    commands start quickly.
    """

    is_swept: ClassVar[bool] = True
    """Whether the trials are points of a sweep, so that effects of axes and best points are computed over them."""
    is_listed_in_terminal: ClassVar[bool] = True
    """Whether a terminal lists the trials in the table of all trials as well."""
    is_listed_on_pages: ClassVar[bool] = True
    """Whether HTML and Markdown list the trials in the table of all trials as well."""
    has_own_intervals: ClassVar[bool] = False
    """Whether the finding has intervals of its own, so that warnings about single estimates would only distract."""
    hidden_axes: ClassVar[frozenset[str]] = frozenset()
    """Axes whose effect the charts of the finding show better than those of a sweep."""

    independent_unit: ClassVar[str] = ""
    """What one repetition is where repetitions are independent of each other, as `load`; empty where processes are."""

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        """Compute it from the trials of the experiment in one run; None where they show nothing together."""
        ...

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        """Change how a trial is reported, for example drop doubts that `read` states better."""
        return trial

    @classmethod
    def compared_params(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """Those by which two trials are told apart, without what says nothing about the work."""
        return params

    @classmethod
    def asked_settings(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """Settings by the names under which the thing under test reports them."""
        return params

    def document(self) -> Mapping[str, Any]:
        """Keys that the result document `assay.result/1` gets, with plain data that JSON can hold."""
        ...

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        """Sections of the report in HTML, in Markdown and in the terminal, the first ones first.

        A terminal asks without charts, and building charts takes a while.
        """
        ...

    def headline(self) -> PageSection | None:
        """The verdict, which stands above all other figures; its title is the verdict itself."""
        return None

    def tiles(self) -> Sequence[Tile]:
        """Key figures for the head of the page."""
        return ()

    def doubts(self) -> Sequence[Doubt]:
        """Reasons to read the finding with care, as warnings of the run."""
        return ()

    def outcome(self) -> RunOutcome | None:
        """What a completed run came to, where that is more than that it was completed."""
        return None

    def failure(self, trial: TrialReport) -> ListItem | None:
        """Why a trial counts as failed in a test report (JUnit), though it was carried out; the title is the reason in short."""
        return None


def finding_class(experiment: str) -> type[Finding] | None:
    """The finding of an experiment; None where it has none, or where that cannot be imported any more.

    Nothing is imported for an experiment without one.
    """
    if not lookup.is_known("findings", experiment):
        return None
    try:
        found: type[Finding] = lookup.find("findings", experiment)
    except (LookupFailed, MissingExtra):
        return None
    return found
