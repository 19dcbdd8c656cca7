from template_name.finding import TemplateNameFinding

from assay.testing import FindingContract, sample_report


class TestFinding(FindingContract):
    finding = "template_name.finding:TemplateNameFinding"


def test_the_slow_trial_takes_twice_as_long():
    finding = TemplateNameFinding.read(sample_report().trials)

    assert [round(ratio, 1) for ratio in finding.ratios.values()] == [1.0, 2.0]


def test_a_single_trial_has_nothing_to_be_set_against():
    assert TemplateNameFinding.read(sample_report().trials[:1]) is None
