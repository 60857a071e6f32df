"""`gradsift explain`: everything about one row, from its source to its shard or to the reason it was dropped.

Reads: the catalog to find the row, then the row's part in each folder that holds it; never the corpus.
Writes: nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.catalog import current
from pipelines.catalog import views as catalog
from pipelines.catalog.results import cell, cut, visible
from pipelines.core.project import Project
from pipelines.core.tables import Connection, select
from scoring.core.errors import ConfigError
from scoring.core.types import Record
from transforms.core import parts, schemas
from transforms.core.rejects import REASONS

TEXT_CHARS = 300
SHOWN = 10  # ids or rejects, where more match
AT_URI = "(uri = $1 OR uri || ':' || position = $1)"
_PAYLOADS = ("images", "audio")


@dataclass(frozen=True)
class Life:
    """What is known about one sample: its row in each folder, its place in the plan, and its rules."""

    project: Project
    part: str
    row: int
    folders: Mapping[str, Record]
    plan: Record | None  # None: not planned, or there is no plan
    has_plan: bool
    rules: Sequence[Record]
    rejects: Sequence[Record]  # parts of the same file, or rows of the same id, that could not be read
    weights: Mapping[str, float]  # of the static dimensions


def explain(project: Project, wanted: str) -> str:
    """Returns the explanation of the sample or reject whose id or uri is `wanted`, or whose id uniquely starts with it.

    `uri:position`, as `gradsift query rejects` prints it, names one row of a file.

    Raises:
      ConfigError: no sample or more than one matches; lists the closest ids.
    """
    with current.reading(project) as connection:
        place = _find(connection, "sample_id = $1", wanted) or _find(connection, AT_URI, wanted)
        rejects = [] if place else _rejects(connection, f"sample_id = $1 OR {AT_URI}", [wanted])
        if rejects:
            return _text(line for reject in rejects for line in _reject(reject))
        place = place or _find(connection, "starts_with(sample_id, $1)", wanted)
        if not place:
            raise ConfigError(f"no sample or reject matches {wanted[:200]!r}", remedy=_nearest(connection, wanted))
        life = _life(project, connection, *place)
    return _text(line for section in SECTIONS for line in section(life))


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _find(connection: Connection, match: str, wanted: str) -> tuple[str, int] | None:
    """Returns the part and the row of the one sample that `match` finds, or None."""
    rows = connection.execute(
        f"SELECT sample_id, part, row FROM samples WHERE {match} ORDER BY 1 LIMIT {SHOWN + 1}", [wanted]
    ).fetchall()
    if len(rows) > 1:
        raise ConfigError(f"{wanted!r} matches more than one sample", remedy=f"use one of {_listed(rows)}")
    return (str(rows[0][1]), int(rows[0][2])) if rows else None


def _nearest(connection: Connection, wanted: str) -> str:
    rows = connection.execute(
        "SELECT sample_id FROM samples ORDER BY jaro_winkler_similarity(sample_id, $1) DESC, 1 LIMIT 5", [wanted]
    ).fetchall()
    return f"the closest ids are {_listed(rows)}" if rows else "no sample could be read; see `gradsift query rejects`"


def _listed(rows: Sequence[tuple[str]]) -> str:
    return ", ".join(visible(row[0]) for row in rows[:SHOWN]) + (", …" if len(rows) > SHOWN else "")


def _rejects(connection: Connection, match: str, values: Sequence[object]) -> Sequence[Record]:
    order = f"ORDER BY uri, position, reason LIMIT {SHOWN}"
    return select(connection, f"SELECT * FROM rejects WHERE {match} {order}", values)


def _reject(reject: Record) -> Iterator[str]:
    yield f"reject {visible(str(reject['uri']))}:{reject['position']}"
    yield _line("source", reject["source"])
    yield _line("stage", reject["stage"])
    yield _line("reason", f"{reject['reason']}: {REASONS.get(reject['reason'], 'see the error')}")
    yield _line("error", reject["error"])
    if reject["tail"]:
        yield _line("decoder output", reject["tail"])
    if reject["excerpt"]:
        yield _line("content begins", reject["excerpt"])
    yield _line("partly read", "yes; what was read became a sample" if reject["partial"] else "no")


def _life(project: Project, connection: Connection, part: str, row: int) -> Life:
    folders = _folders(project, part, row)
    own = folders["samples"]
    has_plan = (project.data / catalog.PLAN_FILE).is_file()
    places = "SELECT * FROM plan WHERE sample_id = $1 ORDER BY rank LIMIT 1"
    found = select(connection, places, [own["sample_id"]]) if has_plan else []
    related = "sample_id = $1 OR (partial AND uri = $2 AND position = $3)"
    return Life(
        project, part, row, folders, found[0] if found else None, has_plan,
        rules=select(connection, "SELECT * FROM rules ORDER BY position", []),
        rejects=_rejects(connection, related, [own["sample_id"], own["uri"], own["position"]]),
        weights=_weights(project),
    )  # fmt: skip


def _weights(project: Project) -> dict[str, float]:
    """Returns the AHP weight of each static dimension."""
    from transforms.static.config import StaticConfig

    return project.section("static", StaticConfig).weights


def _folders(project: Project, part: str, row: int) -> dict[str, Record]:
    """Returns the row of each folder whose part holds the same samples; a half-finished run has fewer."""
    ids = parts.Footer(project.folder("samples") / part).meta.get("ids")
    found = {}
    for folder, schema in schemas.PARTS.items():
        path = project.folder(folder) / part
        if folder != "rejects" and path.exists() and parts.Footer(path).meta.get("ids") == ids:
            columns = [c for c in schema.names if c not in _PAYLOADS]
            found[folder] = parts.read_part(path, columns).slice(row, 1).to_pylist()[0]
    return found


def _line(name: str, value: object) -> str:
    return f"  {name:<22} {cut(value, TEXT_CHARS) if isinstance(value, str) else cell(value)}"


def _origin(life: Life) -> Iterator[str]:
    row = life.folders["samples"]
    yield f"sample {visible(row['sample_id'])}"
    segment = f", segment {row['segment']}" if row["segment"] else ""
    yield _line("source", row["source"])
    yield _line("read from", f"{row['uri']} at {cell(row['position'])}{segment}")
    yield _line("modality", row["modality"])
    facts = ("width", "height", "duration_s", "frames", "has_audio", "codec", "label", "domain")
    yield from (_line(name, row[name]) for name in facts if row[name] is not None)
    if row["text"] is not None:
        yield _line("text begins", row["text"])
    yield _line("part", f"{life.part}, row {life.row}")
    for reject in life.rejects:
        yield from ("", *_reject(reject), "")


def _verdict(life: Life, stage: str) -> str:
    row = life.folders[stage]
    if row["kept"] is None:
        return f"{stage}: skipped, dropped by an earlier stage"
    return f"{stage}: kept" if row["kept"] else f"{stage}: dropped, {', '.join(row['reasons'])}"


def _rules(life: Life, stage: str) -> Iterator[str]:
    """Yields one line per rule: passed or failed, the value, the threshold and its params key."""
    row = life.folders[stage]
    rules = [r for r in life.rules if r["stage"] == stage]
    if all(row[r["value"]] is None for r in rules):
        yield "  – no rule applies to this kind of row"
        return
    for rule in rules:
        value = row[rule["value"]]
        failed = rule["code"] in (row["reasons"] or [])
        sign = "≥" if rule["bound"] == "min" else "≤"
        mark = "–" if value is None else "✗" if failed else "✓"
        told = "not measured" if value is None else f"{cell(value)} (keeps {sign} {cell(rule['threshold'])})"
        why = f"  {rule['sentence']} ({rule['param']})" if failed else ""
        yield f"  {mark} {rule['code']:<30} {told}{why}"


def _clean(life: Life) -> Iterator[str]:
    row = life.folders.get("clean")
    if row is None:
        return
    yield _verdict(life, "clean")
    if row["language"]:
        yield _line("language", f"{row['language']} ({cell(row['language_score'])})")
    yield from _rules(life, "clean")


def _dedup(life: Life) -> Iterator[str]:
    row = life.folders.get("dedup")
    if row is None:
        return
    yield _verdict(life, "dedup")
    if row["matched_id"] is not None:
        yield _line("duplicate of", f"{row['matched_id']}, similarity {cell(row['similarity'])}")
    elif row["cluster"] is not None:
        yield _line("cluster", f"{row['cluster']}; this row is the one that was kept")


def _quality(life: Life) -> Iterator[str]:
    row = life.folders.get("quality")
    if row is None:
        return
    yield _verdict(life, "quality")
    from pipelines.catalog import explain_quality

    if row["quality"] is not None:
        yield from _rules(life, "quality")
        yield _line("label", row["quality_label"])
        spread = f"{cell(row['quality_min'])} to {cell(row['quality_max'])}"
        yield _line("windows", f"{row['windows']} from {spread}, {cell(100 * row['coverage'])} % of the tokens scored")
        yield from (_line(name, told) for name, told in explain_quality.facts(life.project, life.folders))
    yield from (_line(name, told) for name, told in explain_quality.further(life.project, life.part, life.row))


def _tokens(life: Life) -> Iterator[str]:
    row = life.folders.get("tokens")
    if row is None or row["tokens"] is None:
        return
    kinds = {k: row[f"{k}_tokens"] for k in ("text", "image", "video", "audio") if row[f"{k}_tokens"]}
    yield f"tokens: {cell(row['tokens'])}"
    yield from (_line(kind, cell(count)) for kind, count in kinds.items())
    yield _line("training FLOPs", f"{row['flops']:.3g}")
    yield _line("complexity", f"{cell(row['complexity'])} × the median of all rows")


def _static(life: Life) -> Iterator[str]:
    """Yields each dimension in [0, 1], its share of the score, and what was measured."""
    row, raw = life.folders.get("static"), life.folders.get("static/raw", {})
    if row is None or row["static_score"] is None:
        return
    yield f"static score: {cell(row['static_score'])}"
    defined = sum(w for d, w in life.weights.items() if row[d] is not None)
    for name, weight in life.weights.items():
        if row[name] is not None:
            measured = f"  measured {cell(raw[name])}" if raw.get(name) is not None else ""
            yield _line(name, f"{row[name]:.3f}  weight {weight / defined:.3f}{measured}")
    beside = {r: raw[r] for r in schemas.STATIC_READINGS if raw.get(r) is not None}
    yield from (_line(name, f"measured {cell(value)}, not weighted") for name, value in beside.items())
    absent = [d for d in life.weights if row[d] is None]
    if absent:
        yield _line("not defined", ", ".join(d.replace("_", " ") for d in absent))


def _gradients(life: Life) -> Iterator[str]:
    row = life.folders.get("gradients")
    if row is None or (row["loss"] is None and row["gradient_note"] is None):
        return
    if row["grad_norm"] is None:
        yield f"gradients: none, {row['gradient_note']}"
        return
    yield f"gradients ({row['gradient_mode']}) over {cell(row['gradient_tokens'])} tokens, one column per checkpoint"
    yield _line("order_gain", f"{cell(row['order_gain'])} nats per token saved by word order (shuffled loss − loss)")
    for name in ("loss", "grad_norm", "target_cosine", "costate_dot", "costate_cosine"):
        yield _line(name, "  ".join(f"{'–' if v is None else format(v, '.4g'):>9}" for v in row[name] or []))


def _lqs(life: Life) -> Iterator[str]:
    row = life.folders.get("lqs")
    if row is None or row["score"] is None:
        return
    yield f"score: {cell(row['score'])}, band {row['band']}"
    for name in ("lqs", "lqs_z", "learnability", "gradient_quality", "high_value"):
        if row[name] is not None:
            yield _line(name, cell(row[name]))
    if row["score_note"]:
        yield _line("note", row["score_note"])


def _end(life: Life) -> Iterator[str]:
    """Yields the outcome: shard and position, or the filter that dropped the row, or that the plan is missing."""
    for stage in catalog.filters(list(life.folders)):
        row = life.folders[stage]
        if row["kept"] is False:
            yield f"end: dropped by {stage}, {', '.join(row['reasons'])}"
            return
    if life.plan is not None:
        place = life.plan
        yield f"end: shard {place['shard']}, position {place['position']}"
        yield _line("order", f"rank {cell(place['rank'])}, phase {place['phase']}")
        yield _line("pool and tier", f"{place['pool']}, {place['tier']}")
    elif life.has_plan:
        yield "end: kept by every filter, but not selected by the plan (params plan.top_ratio, or no score)"
    else:
        yield "end: kept so far; not planned yet"


SECTIONS = (_origin, _clean, _dedup, _quality, _tokens, _static, _gradients, _lqs, _end)
