-- rows, kept rows and confidence by detected language
SELECT language, count(*) AS rows, count(*) FILTER (kept) AS kept,
       round(100 * count(*) FILTER (kept) / count(*), 1) AS percent_kept,
       round(avg(language_score), 3) AS mean_language_score, sum(chars)::BIGINT AS chars
FROM fates
WHERE language IS NOT NULL
GROUP BY language
ORDER BY rows DESC, language
