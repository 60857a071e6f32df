"""The stage `clean`: its transform, config, boilerplate lines and benchmark index."""
