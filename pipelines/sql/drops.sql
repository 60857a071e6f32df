-- dropped rows by stage, reason and source; a row that fails several rules counts under each
SELECT dropped_by AS stage, reason, source, count(*) AS rows, min(sample_id) AS example
FROM (SELECT dropped_by, unnest(reasons) AS reason, source, sample_id FROM fates WHERE NOT kept)
GROUP BY ALL
ORDER BY rows DESC, stage, reason, source
