"""The stage `shard`: its transform, config and manifest."""
