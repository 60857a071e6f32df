"""The four MinHash stages of datatrove over a folder of JSONL files: python dedup_datatrove.py INPUT OUTPUT WORKERS."""

import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter


def main(source: str, output: str, workers: int) -> None:
    """Runs them with as many tasks as workers; the buckets with one a bucket, as datatrove wants."""
    config, work = MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8), Path(output)
    at = {name: str(work / name) for name in ("signatures", "buckets", "remove", "kept")}
    reader = JsonlReader(source)
    stages = (
        ([reader, MinhashDedupSignature(output_folder=at["signatures"], config=config)], workers),
        ([MinhashDedupBuckets(input_folder=at["signatures"], output_folder=at["buckets"], config=config)], 14),
        ([MinhashDedupCluster(input_folder=at["buckets"], output_folder=at["remove"], config=config)], 1),
        ([reader, MinhashDedupFilter(input_folder=at["remove"]), JsonlWriter(at["kept"], compression=None)], workers),
    )
    for k, (pipeline, tasks) in enumerate(stages):
        logs = str(work / "logs" / str(k))
        LocalPipelineExecutor(pipeline=pipeline, tasks=tasks, workers=workers, logging_dir=logs).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
