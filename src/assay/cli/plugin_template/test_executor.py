from assay.testing import ExecutorContract


class TestExecutor(ExecutorContract):
    executor = "template_name.executor:TemplateNameExecutor"
