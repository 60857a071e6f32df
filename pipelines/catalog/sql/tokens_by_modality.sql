-- kept rows, tokens and training cost by modality of the row
SELECT modality, count(*) AS rows, sum(tokens)::BIGINT AS tokens, sum(text_tokens)::BIGINT AS text_tokens,
       sum(image_tokens)::BIGINT AS image_tokens, sum(video_tokens)::BIGINT AS video_tokens,
       sum(audio_tokens)::BIGINT AS audio_tokens, sum(flops::HUGEINT)::DOUBLE AS flops,
       round(avg(complexity), 3) AS mean_complexity
FROM fates
WHERE kept
GROUP BY modality
ORDER BY tokens DESC, modality
