"""The first stage: what people write becomes typed data.

Specs, suites, team files, agent files, cases, data sets, traces and settings are read here. `document` and `yaml_text` turn text into
plain data that remembers its lines; pydantic models (`schema`, `suite`, `team`, `agents`, `case_keys`) say which keys there are; the
readers make the frozen nouns of `assay.model` from them. A reader collects every mistake, each with file, line and key, and raises
them together as one `SpecError`, so that a file need not be fixed one error at a time. Nothing here imports what a spec names:
whether an experiment, agent or scorer exists is checked by `assay.plan`.
"""
