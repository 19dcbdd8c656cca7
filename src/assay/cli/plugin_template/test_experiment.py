import pytest
from pydantic import ValidationError
from template_name.experiment import TemplateNameExperiment

from assay.testing import ExperimentContract


class TestExperiment(ExperimentContract):
    experiment = "template_name.experiment:TemplateNameExperiment"
    params = {"size": 10}


def test_there_must_be_something_to_sort():
    with pytest.raises(ValidationError):
        TemplateNameExperiment.Params(size=0)
