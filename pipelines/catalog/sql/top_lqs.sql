-- the rows with the highest learnability-quality score
-- $rows = 20
SELECT sample_id, source, lqs, learnability, gradient_quality, quality, static_score, score, band, left(text, 200) AS text
FROM samples_all
WHERE lqs IS NOT NULL
ORDER BY lqs DESC, sample_id
LIMIT $rows
