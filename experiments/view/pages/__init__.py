"""The pages of the viewer, the static site and the report: what each shows, and the templates that show it."""
