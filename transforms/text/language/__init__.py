"""Language identification, by text and by paragraph."""
