"""Learning where the data are: sums over shards that stay on the workers of a Dask cluster."""
