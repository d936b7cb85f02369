"""The pages of the viewer, the static site and the report: their contents and their templates."""
