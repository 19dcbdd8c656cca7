from template_name.reporter import TemplateNameReporter

from assay.testing import ReporterContract, sample_report


class TestReporter(ReporterContract):
    reporter = "template_name.reporter:TemplateNameReporter"


def test_every_trial_has_its_line(tmp_path):
    [file] = TemplateNameReporter().write(sample_report(), tmp_path)

    assert file.read_text().count(": 50 ok") == 2
