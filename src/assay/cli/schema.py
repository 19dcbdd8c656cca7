"""`assay schema`: what an editor needs to check and complete a file.

Schemas are generated from the declarations that files are read with, so an editor and `assay validate` cannot disagree about
keys and types.
"""

from __future__ import annotations

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("what", type=click.Choice(["spec", "suite", "agents", "team", "result"]))
@common
def schema(session: Session, what: str) -> None:
    """Print the JSON schema of a spec, suite, agents or team file, or of a result document.

    \b
    assay schema suite > suite.schema.json
    In VS Code, the first line of a suite: # yaml-language-server: $schema=suite.schema.json
    """
    if what == "result":
        from assay.report.documents.result import result_schema

        found = result_schema()
    else:
        from assay.spec.json_schema import file_schema

        found = file_schema(what)
    session.emit({"$schema": "https://json-schema.org/draft/2020-12/schema", **found})
