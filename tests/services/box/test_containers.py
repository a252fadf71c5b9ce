from gpudeck.services.box.containers import containers_on, reload_risk
from gpudeck.services.box.types import GpuProcess, Reading, Snapshot
from tests.services.box.boxes import pair


def seen(*on_cards: tuple[GpuProcess, ...]) -> Snapshot:
    return Snapshot(pair(), 0.0, tuple(Reading(gpu, processes=processes) for gpu, processes in enumerate(on_cards)))


OWN = GpuProcess(1, "VLLM::EngineCore", engine="chat")
GEMMA = GpuProcess(2, "python3", container="container gemma")
TRAIN = GpuProcess(3, "python3", container="container 0123456789ab")


def test_a_box_without_containers_on_its_cards_bears_no_risk() -> None:
    assert reload_risk(None) == ""
    assert reload_risk(seen((OWN,), ())) == ""


def test_each_container_is_named_with_its_cards() -> None:
    box = seen((OWN, GEMMA), (GEMMA, TRAIN))
    assert containers_on(box) == {"container gemma": (0, 1), "container 0123456789ab": (1,)}
    who = "container gemma (GPU 0, 1), container 0123456789ab (GPU 1)"
    assert f"take the cards from containers that use them: {who}." in (reload_risk(box))


def test_one_container_is_one() -> None:
    assert "from a container that uses them: container gemma (GPU 0)." in reload_risk(seen((GEMMA,)))
