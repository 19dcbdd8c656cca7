"""The two processes of the scorer `code`: one runs the code under judgement, the other its tests.

Bare interpreters in a sandbox run these files, so they import nothing of Assay and nothing but the standard library.
"""
