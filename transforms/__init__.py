"""How rows move: PTransforms over parts, readers, decoders and text kernels.

Public surface, for extensions (docs/extending.md):
  Rule                   a rule of a filter: its code, column, threshold and sentence (core/rules.py)
  text/extra/            a text rule of your own: a module with `RULE` and `measure`, found by its place
  Extent, Record, Fault  what a reader takes and yields (readers/base.py)
  READERS                the readers by name (ingest/reading.py); readers/kinds.py says which file is whose
  decode/                a decoder: a media file in, its data and facts out, MediaError for what is broken (image.py)
All else may change.
"""
