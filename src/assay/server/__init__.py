"""The server of `assay serve`: the REST API of the performance specification, over the same documents as the commands.

`launch` starts it, `app` puts it together, and every resource has a file with its routes. Routes read through `pipeline` and
answer with the documents of `report/documents`: no figure is computed here. Pages can be added beside the API as another router.
"""
