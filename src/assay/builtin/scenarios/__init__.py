"""The scenarios of `assay stress`, one a file; each has the sizes of its full form as defaults, and a quick one."""
