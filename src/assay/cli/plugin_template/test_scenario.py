from template_name.scenario import TemplateNameScenario

from assay.testing import SampleBench, ScenarioContract


class TestScenario(ScenarioContract):
    scenario = "template_name.scenario:TemplateNameScenario"


def test_it_offers_the_base_rate_in_every_burst():
    bench = SampleBench(base=10.0)

    finding = TemplateNameScenario(bursts=2, seconds=1.0).run(bench)

    assert finding.offered == 20
    assert [judgement.name for judgement in finding.judgements] == ["wakes_in"]
