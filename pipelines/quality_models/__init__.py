"""Quality models: fit a head, from labels or a teacher, measure, export and describe it."""
