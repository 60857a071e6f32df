"""`gradsift query whatif`: what other thresholds would keep, from the stored values, without a run.

The catalog holds every rule's value for every row, so verdicts can be recomputed. What the filters after the
changed rule would do with a row that they have not seen is unknown: such rows count as kept and are also counted
in `unjudged`. Duplicates are left as found, although the surviving row of a cluster may change.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from pipelines.catalog import current
from pipelines.catalog import views as catalog
from pipelines.catalog.results import Result, number
from pipelines.core import params
from pipelines.core.conserve import FILTERS
from pipelines.core.project import Project
from pipelines.core.tables import quote
from scoring.core.errors import ConfigError, DataError
from scoring.core.types import JsonObject, Record
from transforms.core.rules import Rule

BATCH_ROWS = 2048
DESCRIPTION = "what other thresholds would keep, by source: --rule CODE --threshold NUMBER (repeatable)"

Changes = Mapping[str, float]  # reason code of a rule → its new threshold


def changes(rules: Sequence[str], thresholds: Sequence[float]) -> dict[str, float]:
    """Returns the pairs of --rule and --threshold, in the order in which they were given.

    Raises:
      ConfigError: there is none, they do not match, or a rule is given twice.
    """
    if not rules or len(rules) != len(thresholds):
        raise ConfigError(
            f"whatif needs one --threshold per --rule, got {len(rules)} --rule and {len(thresholds)} --threshold",
            remedy="gradsift query whatif --rule gopher_short_doc --threshold 30",
        )
    twice = sorted({code for code in rules if rules.count(code) > 1})
    if twice:
        raise ConfigError(
            f"a rule takes one threshold: {', '.join(twice)}", remedy="run whatif once for each threshold"
        )
    return dict(zip(rules, thresholds, strict=True))


def find(code: str) -> Rule:
    """Returns the rule of reason `code`.

    Raises:
      ConfigError: there is none (lists similar codes), or the reason has no threshold.
    """
    known = {rule.code: rule for rule in catalog.rules()}
    if code in known:
        return known[code]
    if code in {other for _, other, _ in catalog.sentences()}:
        raise ConfigError(f"the reason {code} has no threshold", remedy="`gradsift rules` lists those that have one")
    near = [*get_close_matches(code, known, n=3), *(c for c in known if code and code in c)]
    listed = ", ".join(dict.fromkeys(near))
    remedy = f"did you mean {listed}?" if near else "`gradsift rules` lists them"
    raise ConfigError(f"no such rule: {code}", remedy=remedy)


@contextmanager
def answer(project: Project, wanted: Changes) -> Iterator[Result]:
    """Yields one row per source, and one for all: rows and tokens kept now, and with the thresholds `wanted`.

    Raises:
      ConfigError: a rule does not exist, or its threshold is invalid.
      DataError: the stage that measures a rule has not run.
    """
    rules = [find(code) for code in wanted]
    _check(project, rules, wanted)
    with current.reading(project) as connection:
        there = {name for name, *_ in connection.execute("DESCRIBE fates").fetchall()}
        for rule in rules:
            if f"{rule.stage}_kept" not in there or rule.value not in there:
                raise DataError(
                    f"no values for rule {rule.code} yet", where=str(project.folder(rule.stage)),
                    remedy=f"gradsift run {rule.stage}",
                )  # fmt: skip
        relation = connection.sql(_sql(rules, wanted, there))
        yield Result(list(relation.columns), relation.to_arrow_reader(BATCH_ROWS))


def _check(project: Project, rules: Sequence[Rule], wanted: Changes) -> None:
    """Raises ConfigError if a params file with the thresholds `wanted` would not be valid."""
    for stage in dict.fromkeys(rule.stage for rule in rules):
        section = _changed(project.params.tree[stage], [r for r in rules if r.stage == stage], wanted)
        tree = {**project.params.tree, stage: section}
        module, kind = params.SECTIONS[stage].split(":")
        params.Params(Path("--threshold"), tree).section(stage, getattr(import_module(module), kind))


def _changed(section: Record, rules: Sequence[Rule], wanted: Changes) -> JsonObject:
    found = dict(section)
    for rule in rules:
        spot = found
        *path, last = rule.threshold.split(".")
        for key in path:
            spot[key] = spot = dict(spot[key])
        value = wanted[rule.code]
        spot[last] = int(value) if float(value).is_integer() else value
    return found


def _sql(rules: Sequence[Rule], wanted: Changes, there: set[str]) -> str:
    codes = ", ".join(quote(rule.code) for rule in rules)
    fails = " OR ".join(_fails(rule, wanted[rule.code]) for rule in rules)
    unseen = " OR ".join(f"{f}_kept IS NULL" for f in FILTERS if f"{f}_kept" in there)
    size, measures = ("token", _TOKENS) if "tokens" in there else ("word", _WORDS)
    return f"""
        WITH judged AS (
            SELECT source, kept AS now, {unseen} AS unseen, fails, {measures},
                   len(reasons) > len(list_filter(reasons, lambda code: code NOT IN ({codes}))) AS failed,
                   len(list_filter(reasons, lambda code: code NOT IN ({codes}))) > 0 AS failed_else
            FROM (SELECT *, {fails} AS fails FROM fates)
        ),
        rates AS (SELECT source AS rated, {_RATE} AS rate FROM judged GROUP BY source),
        sized AS (
            SELECT source, now, NOT fails AND NOT failed_else AS later, unseen, failed AND NOT fails AS freed,
                   known IS NULL AS guessed,
                   coalesce(known, words * coalesce(rate, (SELECT {_RATE} FROM judged)),
                            CASE WHEN coalesce(words, 0) = 0 THEN 0 END) AS size
            FROM judged JOIN rates ON source IS NOT DISTINCT FROM rated
        )
        SELECT CASE grouping(source) WHEN 1 THEN '(all)' ELSE source END AS source, count(*) AS rows,
               count(*) FILTER (now) AS kept_now, count(*) FILTER (later) AS kept_then, kept_then - kept_now AS change,
               count(*) FILTER (later AND NOT now AND unseen) AS unjudged,
               count(*) FILTER (freed AND NOT later) AS dropped_by_others,
               {_total("now")} AS {size}s_now, {_total("later")} AS {size}s_then,
               {size}s_then - {size}s_now AS {size}_change,
               {_total("later AND guessed")} AS estimated_{size}s
        FROM sized GROUP BY GROUPING SETS ((source), ()) ORDER BY grouping(source), source"""


# A row's size is its tokens; that of a row without any is its words times the tokens per word of its source.
_TOKENS = "tokens AS known, words, text_tokens"
_WORDS = "coalesce(words, 0) AS known, words, NULL::BIGINT AS text_tokens"
_RATE = "sum(text_tokens) FILTER (words > 0) / nullif(sum(words) FILTER (text_tokens IS NOT NULL), 0)"


def _fails(rule: Rule, threshold: float) -> str:
    return (
        f'coalesce("{rule.value}" {"<" if rule.bound == "min" else ">"} {quote(repr(float(threshold)))}::DOUBLE, false)'
    )


def _total(condition: str) -> str:
    """Returns the sum of the sizes; null where a row of words has none, for no row of the corpus has tokens."""
    whole = f"count(size) FILTER ({condition}) = count(*) FILTER ({condition})"
    return f"CASE WHEN {whole} THEN coalesce(round(sum(size) FILTER ({condition})), 0)::BIGINT END"


def heading(project: Project, wanted: Changes) -> str:
    """Returns the hypothetical thresholds, one line per rule."""
    now, lines = catalog.limits(project), []
    for code, threshold in wanted.items():
        rule = find(code)
        sign = "≥" if rule.bound == "min" else "≤"
        place = f"{rule.stage}.{rule.threshold}"
        lines.append(f"{code}: keeps {sign} {number(threshold)} instead of {sign} {number(now[code])} ({place})")
    return "\n".join(lines)


LEGEND = """unjudged           among kept_then: rows that later filters have not seen and may still drop
dropped_by_others  rows that would pass these rules but are dropped for other reasons
estimated_…        part of …_then: rows without a token count, estimated from words × tokens per word of their source"""
