"""Objects gathered into packs: what a bulk import writes in the place of loose objects."""
