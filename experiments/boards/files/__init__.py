"""Files of boards drawn, solved and verified, as fast as the core: arrays to columns, part by part."""
