"""`assay schema`: what an editor needs to check and complete a file."""

from __future__ import annotations

import click

from assay.cli.session import Session, common


@click.command()
@click.argument("what", type=click.Choice(["spec", "team", "result"]))
@common
def schema(session: Session, what: str) -> None:
    """Print the JSON schema of a spec file, a team file or a result document."""
    if what == "spec":
        from assay.spec.schema import SpecFile

        document = SpecFile.model_json_schema()
    elif what == "team":
        from assay.spec.team import TeamFile

        document = TeamFile.model_json_schema()
    else:
        from assay.report.document import result_schema

        document = result_schema()
    session.emit({"$schema": "https://json-schema.org/draft/2020-12/schema", **document})
