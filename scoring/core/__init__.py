"""What every score needs: errors, files, exact sums, compiled kernels and the tables kept beside them."""
