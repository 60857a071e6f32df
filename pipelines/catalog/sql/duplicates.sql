-- the largest clusters of duplicates, with the row that was kept
-- $rows = 20
SELECT cluster AS survivor, count(*) AS rows, count(DISTINCT source) AS sources,
       round(min(similarity), 3) AS lowest_similarity,
       array_to_string(list(sample_id ORDER BY sample_id) FILTER (NOT survivor)[:5], ', ') AS dropped_ids,
       left(min_by(text, sample_id) FILTER (survivor), 200) AS text
FROM fates
WHERE cluster IS NOT NULL
GROUP BY cluster
HAVING count(*) > 1
ORDER BY rows DESC, cluster
LIMIT $rows
