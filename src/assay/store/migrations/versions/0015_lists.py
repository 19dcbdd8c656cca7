"""Lists of an agent or a suite read indexes alone: the ids of its trials, and the agents of a suite.

On PostgreSQL `schema.upgrade` builds the indexes afterwards, without keeping anybody from writing.
"""

from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.drop_index("ix_trials_agent_id", "trials")
    if op.get_bind().dialect.name == "postgresql":
        # Where the upgrade to 0014 went on to this one, there is none yet.
        op.drop_index("ix_trials_of_suite", "trials", if_exists=True)
        return
    op.drop_index("ix_trials_of_suite", "trials")
    op.create_index("ix_trials_of_agent", "trials", ["agent_id", "id"])
    op.create_index("ix_trials_agents_of_suite", "trials", ["suite", "id", "agent_id", "started"])
