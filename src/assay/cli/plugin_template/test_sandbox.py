from assay.testing import SandboxContract


class TestSandbox(SandboxContract):
    sandbox = "template_name.sandbox:TemplateNameSandbox"
