"""The engineer of a trainer elsewhere, by files in a folder: versions of a design, and outcomes of answers."""
