from template_name.scorer import TemplateNameScorer

from assay.model import Case
from assay.plugin import Judged
from assay.testing import ScorerContract


class TestScorer(ScorerContract):
    scorer = "template_name.scorer:TemplateNameScorer"


def test_half_of_the_words_is_half_of_the_score():
    case = Case("colours", "Name two colours.", "red green")

    judgement = TemplateNameScorer().score(Judged("green and blue", case.expected, case))

    assert judgement.value == 0.5
    assert judgement.reason == "missing: red"
