"""Findings become charts and documents: console, Markdown, HTML, JSON, CSV, PNG, JUnit."""
