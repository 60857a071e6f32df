-- what could not be read, by reason and source, with one example and the decoder's words
SELECT reason, source, count(*) AS rows, count(*) FILTER (partial) AS partly_read,
       min_by(uri || ':' || position, (uri, position)) AS example, min_by(error, (uri, position)) AS error,
       min_by(tail, (uri, position)) AS last_words
FROM rejects
GROUP BY reason, source
ORDER BY rows DESC, reason, source
