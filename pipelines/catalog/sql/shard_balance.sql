-- rows, tokens and predicted cost of each shard, and how far it is from the mean of its pool
SELECT shard, pool, count(*) AS rows, sum(tokens)::BIGINT AS tokens, sum(flops::HUGEINT)::DOUBLE AS flops,
       round(100 * (sum(flops) / avg(sum(flops)) OVER (PARTITION BY pool) - 1), 2) AS percent_off_pool_mean,
       string_agg(DISTINCT band, ', ' ORDER BY band) AS bands, count(*) FILTER (tier = 'hot') AS hot_rows
FROM plan
GROUP BY shard, pool
ORDER BY shard
