"""What every stage needs to run: project, params, Beam options, progress, fingerprints, conservation."""
