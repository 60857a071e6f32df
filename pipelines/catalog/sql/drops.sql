-- dropped rows by stage, reason and source; a row that fails several rules counts under each
SELECT d.stage, d.reason, d.source, count(*) AS rows, min(d.sample_id) AS example, any_value(r.sentence) AS meaning
FROM (SELECT dropped_by AS stage, unnest(reasons) AS reason, source, sample_id FROM fates WHERE NOT kept) AS d
LEFT JOIN reasons AS r ON r.stage = d.stage AND r.code = d.reason
GROUP BY d.stage, d.reason, d.source
ORDER BY rows DESC, d.stage, d.reason, d.source
