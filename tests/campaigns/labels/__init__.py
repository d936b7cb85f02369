"""Long checks: our labels of fresh boards against another solver's, and commands watched while they run for long."""
