"""What every transform needs: parts, schemas, rules, rejects, worker processes."""
