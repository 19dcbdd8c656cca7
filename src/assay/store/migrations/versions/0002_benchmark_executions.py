"""The view that people query, under the column names of the performance specification; revision 0012 makes it as it is now."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    pass
