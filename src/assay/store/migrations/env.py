"""Run by Alembic, inside the transaction of `schema.upgrade`."""

import sqlalchemy as sa
from alembic import context

from assay.store.tables import NAMING, revision

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=sa.MetaData(naming_convention=NAMING),
    version_table=revision.name,
    transactional_ddl=True,
)
context.run_migrations()
