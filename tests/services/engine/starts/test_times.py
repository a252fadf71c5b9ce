import pytest

from gpudeck.services.engine.phases import Phase, PhaseTracker, Standing
from gpudeck.services.engine.starts.times import (
    STILL_S,
    PhaseTimes,
    left_words,
    present_for,
    seconds_left,
    seconds_words,
    still_for,
    times_of,
    times_words,
)

BEGAN = 1000.0
LOG = (
    (1004.0, "(APIServer pid=7) INFO 08-20 10:00:04 [model.py:529] Resolved architecture: LlamaForCausalLM"),
    (1010.0, "(EngineCore pid=8) INFO 08-20 10:00:10 [gpu_model_runner.py:2338] Starting to load model /m..."),
    (1012.0, "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]"),
    (1040.0, "(EngineCore pid=8) INFO 08-20 10:00:40 [gpu_model_runner.py:2392] Model loading took 14.9 GiB"),
    (1045.0, "(APIServer pid=7) INFO 08-20 10:00:45 [api_server.py:1971] Starting vLLM API server 0 on http://h:8000"),
)
EARLIER = PhaseTimes(((Phase.STARTING, 4.0), (Phase.INITIALISING, 6.0), (Phase.LOADING, 20.0), (Phase.PROFILING, 10.0)))


def standing(lines: int) -> Standing:
    tracker = PhaseTracker()
    for at, text in LOG[:lines]:
        tracker.feed(text, at)
    return tracker.standing


def test_each_phase_is_timed_from_the_processs_start_to_ready() -> None:
    tracker = PhaseTracker()
    for at, text in LOG:
        tracker.feed(text, at)
    tracker.answered(1046.5)
    assert times_of(tracker.standing, BEGAN).phases == (
        (Phase.STARTING, 4.0),
        (Phase.INITIALISING, 6.0),
        (Phase.LOADING, 30.0),
        (Phase.PROFILING, 5.0),
        (Phase.LISTENING, 1.5),
    )
    assert times_of(tracker.standing, BEGAN).total == 46.5


def test_the_phase_that_still_lasts_is_not_timed() -> None:
    assert times_of(standing(2), BEGAN).phases == ((Phase.STARTING, 4.0), (Phase.INITIALISING, 6.0))
    assert present_for(standing(2), BEGAN, 1017.0) == 7.0


def test_a_log_without_times_gives_none() -> None:
    tracker = PhaseTracker()
    tracker.feed(LOG[1][1])
    assert times_of(tracker.standing, None).phases == ()
    assert present_for(tracker.standing, None, 1017.0) is None
    assert seconds_left(tracker.standing, None, 1017.0, (EARLIER,)) is None


def test_a_clock_that_was_set_back_makes_no_time_below_zero() -> None:
    tracker = PhaseTracker()
    tracker.feed(LOG[1][1], 1010.0)
    tracker.feed(LOG[3][1], 900.0)
    assert times_of(tracker.standing, BEGAN).of(Phase.LOADING) == 0.0


@pytest.mark.parametrize(
    ("lines", "now", "left"),
    [
        (0, 1001.0, 3 + 6 + 20 + 10),
        (2, 1015.0, 15 + 10),
        (2, 1090.0, 10),  # longer than before: as if it ended now
        (4, 1048.0, 2),
    ],
)
def test_what_is_left_is_what_earlier_starts_took(lines: int, now: float, left: float) -> None:
    assert seconds_left(standing(lines), BEGAN, now, (EARLIER,)) == left


def test_of_several_starts_the_one_in_the_middle_of_the_last_three_counts() -> None:
    def took(seconds: float) -> PhaseTimes:
        return PhaseTimes(((Phase.LOADING, seconds),))

    earlier = (took(500), took(90), took(30), took(40))
    assert seconds_left(standing(2), BEGAN, 1010.0, earlier) == 40


def test_nothing_is_left_of_what_is_ready_or_was_never_started_before() -> None:
    tracker = PhaseTracker()
    tracker.answered(1001.0)
    assert seconds_left(tracker.standing, BEGAN, 1002.0, (EARLIER,)) is None
    assert seconds_left(standing(2), BEGAN, 1002.0, ()) is None


def test_a_start_stands_still_when_neither_phase_nor_bar_moves() -> None:
    assert still_for(standing(3), BEGAN, 1012.0 + STILL_S - 1) is None
    assert still_for(standing(3), BEGAN, 1012.0 + STILL_S) == STILL_S
    tracker = PhaseTracker()
    for at, text in LOG[:3]:
        tracker.feed(text, at)
    tracker.feed("(EngineCore pid=8) INFO 08-20 10:02:00 [shm_broadcast.py:466] No available shared memory", 1100.0)
    assert still_for(tracker.standing, BEGAN, 1012.0 + STILL_S) == STILL_S
    assert still_for(Standing(), BEGAN, BEGAN + STILL_S) == STILL_S


def test_a_phase_that_took_long_before_may_take_long_again() -> None:
    slow = PhaseTimes(((Phase.LOADING, 600.0),))
    assert still_for(standing(3), BEGAN, 1012.0 + 1100, (slow,)) is None
    assert still_for(standing(3), BEGAN, 1012.0 + 1300, (slow,)) == 1300


@pytest.mark.parametrize(
    ("seconds", "words"), [(7.6, "8 s"), (60, "1 min"), (125, "2 min 5 s"), (3600, "1 h"), (4210, "1 h 10 min")]
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert seconds_words(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (1, "about to be ready"),
        (38, "about 40 s left"),
        (143, "about 2 min 20 s left"),
        (400, "about 7 min left"),
    ],
)
def test_what_is_left_in_words(seconds: float | None, words: str) -> None:
    assert left_words(seconds) == words


def test_times_in_words_leave_out_what_took_no_time() -> None:
    told = PhaseTimes(((Phase.LOADING, 31.2), (Phase.PROFILING, 0.2), (Phase.COMPILING, 12.0)))
    assert times_words(told) == "loading weights 31 s, compiling 12 s"
