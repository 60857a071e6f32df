"""The stage `dedup`: exact and near duplicates."""
