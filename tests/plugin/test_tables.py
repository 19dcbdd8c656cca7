"""Tables that are built column by column."""

from __future__ import annotations

from assay.model.page import Cell
from assay.plugin import Column, build_table


def test_a_table_has_a_row_for_each_item_and_marks_columns_by_what_they_are() -> None:
    table = build_table(
        [("quick", 0.5, None), ("slow", 2.0, "waits")],
        Column("Agent", lambda row: row[0]),
        Column("Seconds", lambda row: Cell(f"{row[1]:g}", tone="good"), is_minor=True),
        Column("Reason", lambda row: row[2], is_words=True, is_minor=True),
        caption=Cell("medians"),
    )

    assert list(table.titles) == ["Agent", "Seconds", "Reason"]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["quick", "0.5", "–"],
        ["slow", "2", "waits"],
    ]
    assert table.rows[0][1].tone == "good"
    assert (list(table.words), list(table.minor)) == ([2], [1, 2])
    assert table.caption == Cell("medians")
