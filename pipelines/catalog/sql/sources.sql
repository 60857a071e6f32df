-- the funnel of each source: what came in, what each filter dropped, what is left; a long video is several rows
WITH read AS (SELECT source, count(*) AS read FROM (SELECT DISTINCT source, uri, position FROM samples) GROUP BY source),
lost AS (SELECT source, count(*) AS rejects FROM rejects WHERE NOT partial GROUP BY source),
fate AS (
    SELECT source, count(*) AS rows, count(*) FILTER (dropped_by = 'clean') AS dropped_by_clean,
           count(*) FILTER (dropped_by = 'dedup') AS dropped_by_dedup,
           count(*) FILTER (dropped_by = 'quality') AS dropped_by_quality, count(*) FILTER (kept) AS kept
    FROM fates GROUP BY source
)
SELECT source, coalesce(read, 0) + coalesce(rejects, 0) AS inputs, coalesce(rejects, 0) AS rejects,
       coalesce(rows, 0) AS rows, coalesce(dropped_by_clean, 0) AS dropped_by_clean,
       coalesce(dropped_by_dedup, 0) AS dropped_by_dedup, coalesce(dropped_by_quality, 0) AS dropped_by_quality,
       coalesce(kept, 0) AS kept, round(100 * kept / rows, 1) AS percent_kept
FROM fate LEFT JOIN read USING (source) FULL JOIN lost USING (source)
ORDER BY source
