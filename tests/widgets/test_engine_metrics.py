"""An engine's own counts as rows."""

from gpudeck.services.metrics.types import EngineRates, EngineSample, Timing
from gpudeck.widgets.engine_metrics import MetricsView, duration, metrics_rows, span
from gpudeck.widgets.glyphs import Glyphs
from gpudeck.widgets.lines import Line, width_of

RATES = EngineRates(
    span=178.0,
    latest=EngineSample(0.0, running=12, waiting=3, kv_cache_usage=0.41),
    prompt_tokens_per_s=1204.4,
    generation_tokens_per_s=873.0,
    prefix_hit_rate=0.634,
    preemptions=2,
    percentiles={
        Timing.FIRST_TOKEN: {50: 0.12, 95: 0.8, 99: 4.06},
        Timing.INTER_TOKEN: {50: 0.018, 95: 0.04, 99: 12.0},
    },
    outcomes={"stop": 120, "length": 3, "abort": 0, "err\x1b[2Jor": 1},
)
GLYPHS = Glyphs.unicode()


def words(rows: list[Line]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def test_one_row_tells_what_happens_now() -> None:
    (row,) = words(metrics_rows(MetricsView(RATES), GLYPHS, 100, 3, chosen=False))
    assert row == "   ━━━━━───────  41% KV cache  12 running · 3 waiting · 873 tokens/s out · 1,204 in"


def test_the_chosen_engine_tells_the_last_minutes() -> None:
    rows = words(metrics_rows(MetricsView(RATES), GLYPHS, 100, 3, chosen=True))
    assert rows[1:] == [
        "   first token 0.12 s, 95 % 0.80 s, 99 % 4.1 s · token to token 18 ms, 95 % 40 ms, 99 % 12 s",
        "   prefix cache hits 63% · 2 preempted · ended: 120 stop, 3 length, 1 err^[[2Jor · over 3 min",
    ]


def test_no_row_is_wider_than_its_place() -> None:
    for width in range(1, 90):
        rows = metrics_rows(MetricsView(RATES), GLYPHS, width, 3, chosen=True)
        assert all(width_of(row) <= max(width, 31) for row in rows), width


def test_what_an_engine_does_not_tell_is_left_out() -> None:
    quiet = EngineRates(span=0.0, latest=EngineSample(0.0, running=0, waiting=0))
    assert words(metrics_rows(MetricsView(quiet), GLYPHS, 80, 3, chosen=True)) == ["   0 running · 0 waiting"]
    assert metrics_rows(MetricsView(), GLYPHS, 80, 3, chosen=True) == []


def test_why_there_are_none_is_told_of_the_chosen_one() -> None:
    view = MetricsView(trouble="It logs every re\x1bquest.")
    assert words(metrics_rows(view, GLYPHS, 80, 3, chosen=True)) == ["   It logs every re^[quest."]
    assert metrics_rows(view, GLYPHS, 80, 3, chosen=False) == []


def test_latencies_have_three_figures() -> None:
    assert [duration(value) for value in (0.0042, 0.018, 0.42, 4.06, 75.2)] == [
        "4.2 ms",
        "18 ms",
        "0.42 s",
        "4.1 s",
        "75 s",
    ]
    assert [span(value) for value in (8.0, 89.0, 178.0)] == ["8 s", "89 s", "3 min"]
