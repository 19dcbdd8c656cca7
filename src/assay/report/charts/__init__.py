"""Charts as Vega-Lite, and how they are drawn."""
