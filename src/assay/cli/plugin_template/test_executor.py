from assay.testing import ExecutorContract


class TestExecutor(ExecutorContract):
    executor = "template_name.executor:TemplateNameExecutor"
    # Jobs run in the runner's own process, which cannot be ended when they take too long.
    enforces_limits = False
