-- rows that failed exactly one rule, and that one by a hair: within 10 % of its threshold
-- $within = 0.1
SELECT sample_id, source, stage, code, value, threshold, round(100 * margin, 2) AS percent_off
FROM rule_values
WHERE failed AND margin >= -$within
  AND sample_id IN (SELECT sample_id FROM fates WHERE len(reasons) = 1)
ORDER BY margin DESC, sample_id
