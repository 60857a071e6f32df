-- rows that failed exactly one rule, and that one by a hair: within 10 % of its threshold
-- $within = 0.1
SELECT sample_id, source, stage, code, value, threshold, round(100 * margin, 2) AS percent_off
FROM rule_values
WHERE failed AND failures = 1 AND margin >= -$within
ORDER BY margin DESC, sample_id
