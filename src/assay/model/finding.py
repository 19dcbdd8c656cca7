"""The contract of findings: what the trials of one kind of experiment show together.

Estimates with intervals are the same for every trial, so analysis computes them without knowing the experiment. What only makes sense
for one kind of experiment, such as the breaking points of a stress test or the speedup of a team, is a finding. Because findings are
plug-ins, neither the pipeline nor a report format contains a case for any particular experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from assay.model.page import ListItem, PageSection, RunOutcome, Tile
    from assay.model.report import Doubt, TrialReport


@runtime_checkable
class Finding(Protocol):
    """What an experiment adds to analysis and reports, beside the estimates that every trial has.

    Assay finds a finding by name. The entry point `team` of the group `assay.findings` belongs to the trials of the experiment
    `team`. A finding with the name of an instrument belongs to the trials that have the instrument, and one that experiments
    list under `findings` belongs to the trials of all of them.

    Analysis calls `adjust` for each of these trials, then `read` once with all of them. `read` returns an object of the class, which
    reports ask for its document, its sections and the rest; they never ask what experiment it belongs to. The object is computed
    again for every report from what is stored, so it must depend on the trials alone.

    To write one, subclass this class and define `read`, `document` and `sections`; everything else has a default. The class is
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

    can_rerun: ClassVar[bool] = True
    """Whether `assay gate --rerun-baseline` can run the trials again. It checks out the code that was measured, so this is False for
    an experiment that puts agents under load: it is unknown whether the code of those agents is still the same."""

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
        """Select the params by which two trials are told apart.

        A finding leaves out those that say nothing about the work, such as the address of a server.
        """
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
        """Why a trial counts as failed in a test report (JUnit), though it was executed; the title is the reason in short."""
        return None
