"""The dashboard: one file for each page, or for a few that belong together.

A page reads through `pipeline`, as the commands do, and shows sections that `report` builds, as the reports do. So no figure is computed
twice. What a page shows is in its address, so that every view can be shared.
"""
