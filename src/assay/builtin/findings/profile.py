"""The finding of the instrument `profile`: where the time and the tokens of each trial went, and what could be saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.analysis.profile.profile import profile_of
from assay.builtin.findings.profile_text import (
    bottleneck_table,
    headline_text,
    opportunity_blocks,
    overhead_notes,
    phase_table,
    phase_timeline,
    profile_document,
    token_notes,
    utilization_table,
)
from assay.model import Doubt, TrialReport
from assay.model.page import Charts, PageSection, Tile
from assay.model.profile import Profile
from assay.plugin import Finding
from assay.units import format_count, percent, seconds


@dataclass(frozen=True, slots=True)
class ProfileResults(Finding):
    """The profiles of all trials that were sampled.

    Sampling costs time, so figures of sampled executions are never mixed with timed ones; the overhead is
    measured by pairs of both kinds.
    """

    profiles: tuple[Profile, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        profiles = tuple(profile for trial in trials if (profile := profile_of(trial)) is not None)
        return cls(profiles) if profiles else None

    def document(self) -> Mapping[str, Any]:
        return {"profiles": [profile_document(profile) for profile in self.profiles]}

    def doubts(self) -> Sequence[Doubt]:
        return [
            Doubt("profile", problem, trial=profile.trial)
            for profile in self.profiles
            for problem in profile.problems
        ]

    def headline(self) -> PageSection | None:
        """What could be saved, where there is one profile; several have it each in their own section."""
        return build_summary(self.profiles[0], 1) if len(self.profiles) == 1 else None

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        if len(self.profiles) == 1:
            return list(build_sections(self.profiles[0], 1, with_charts=with_charts))
        found: list[PageSection] = []
        for number, profile in enumerate(self.profiles, 1):
            sections = [
                build_summary(profile, number),
                *build_sections(profile, number, with_charts=with_charts),
            ]
            found += (replace(section, title=f"{profile.trial}: {section.title}") for section in sections)
        return found

    def tiles(self) -> Sequence[Tile]:
        if not self.profiles:
            return ()
        profile = self.profiles[0]
        best = profile.opportunities[0] if profile.opportunities else None
        value = "none found" if best is None else f"{percent(best.impact)} {best.category}"
        return [
            Tile("largest saving", value, best.location if best else "by the rules of assay profile"),
            Tile("sampled execution", seconds(profile.seconds), f"typical of {profile.executions}"),
        ]


def build_summary(profile: Profile, number: int) -> PageSection:
    """What could be saved, and what each saving rests on."""
    several = format_count(profile.executions, "sampled execution")
    return PageSection(
        headline_text(profile),
        opportunity_blocks(profile),
        subtitle=f"{profile.trial}: {several}, typically {seconds(profile.seconds)}",
        tone="warn" if profile.opportunities else "good",
        is_simulated=profile.is_simulated,
        anchor=f"profile-{number}",
    )


def build_sections(profile: Profile, number: int, *, with_charts: bool) -> Iterator[PageSection]:
    """Build the sections of a profile: time by span, time by place, the flame graph, and resources used."""
    spans, flames = [], []
    if with_charts:
        from assay.builtin.findings.profile_charts import flame_charts, span_charts

        spans, flames = [Charts(span_charts(profile))], [Charts(flame_charts(profile))]
    yield PageSection(
        "Execution phases",
        [*spans, phase_table(profile), *phase_timeline(profile)],
        subtitle=f"a typical execution, {seconds(profile.seconds)}",
        anchor=f"profile-{number}-phases",
    )
    yield PageSection(
        "Bottlenecks",
        [*flames, bottleneck_table(profile)] if profile.bottlenecks else [],
        subtitle="where its threads spent time, and why",
        finding="" if profile.bottlenecks else "Nothing was sampled.",
        anchor=f"profile-{number}-bottlenecks",
    )
    yield PageSection(
        "Utilisation and tokens" if profile.tokens.input is not None else "Utilisation",
        [utilization_table(profile)],
        notes=[*token_notes(profile.tokens), *overhead_notes(profile)],
        anchor=f"profile-{number}-utilization",
    )
