"""The fault campaign: breaks what Assay stands on in many ways and counts what came out right."""
