-- labelled rows to look at again: annotators, the model or their neighbours disagree with the label
-- $rows = 20
SELECT text_id, sample_id, label, round(priority, 3) AS priority, array_to_string(reasons, ', ') AS reasons,
       judgements, annotators, round(vote_entropy, 3) AS vote_entropy, round(quality, 3) AS quality,
       round(neighbours, 2) AS neighbours, round(outlier, 2) AS outlier, excerpt
FROM labels
WHERE len(reasons) > 0
ORDER BY priority DESC, text_id
LIMIT $rows
