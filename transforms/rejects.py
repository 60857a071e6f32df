"""Reason codes of rejects: what cannot be read, and why, in words that a person understands."""

REASONS: dict[str, str] = {
    "bad_json": "the line is not JSON",
    "not_an_object": "the line is JSON, but not an object",
    "bad_encoding": "the bytes are not valid in the declared encoding",
    "missing_column": "the column that params map is not there",
    "bad_value": "a value has a type that its column cannot hold",
    "duplicate_id": "another sample has the same id",
    "missing_media": "the file that the row names does not exist",
    "unreadable_file": "the file cannot be opened",
    "empty_file": "the file has no bytes",
    "unsupported_format": "no reader knows this format",
    "unsafe_path": "the path leads out of its folder",
    "broken_archive": "the compressed file ends early or is damaged",
    "broken_parquet": "the file is not whole Parquet",
    "broken_image": "the picture does not decode",
    "too_many_pixels": "the picture is larger than the pixel limit",
    "broken_audio": "the sound does not decode",
    "broken_video": "the video does not decode",
    "no_stream": "the file holds no stream of the wanted kind",
    "timeout": "the decoder took longer than the time limit",
    "too_large": "the file or row is larger than the limit",
}
