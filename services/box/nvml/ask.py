"""Questions to one card: what it will never answer is not asked again, and what ails it is told apart."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from gpudeck.services.box.nvml.faults import CardError, card_fault, never_answered, never_codes

T = TypeVar("T")
FieldId = tuple[int, int]  # NVML_FI_*, and its scope: the number of an NVLink, else 0


class Asker:
    """Asks one card, on one thread at a time."""

    def __init__(self, nvml: Any, index: int, handle: Any) -> None:
        self.nvml = nvml
        self.index = index
        self.handle = handle
        self._never = never_answered(nvml)
        self._never_codes = never_codes(nvml)
        self._unanswered: set[object] = set()
        self._failed: Exception | None = None
        self._answered = False

    def __call__(self, name: str, call: Callable[[Any], T]) -> T | None:
        """What `call` answers for the card's handle, or None.

        A call that is not supported is not made again under this name.  Raises CardError where the card is ill.
        """
        if name in self._unanswered:
            return None
        try:
            answer = call(self.handle)
        except self._never:
            self._unanswered.add(name)
            return None
        except self.nvml.NVMLError as error:
            self._note_failure(error)
            return None
        self._answered = True
        return answer

    def fields(self, wanted: Sequence[FieldId]) -> dict[FieldId, float]:
        """The fields that the card answers, in one call; the others are not asked for again.  Raises CardError."""
        nvml = self.nvml
        asked = [field for field in wanted if field not in self._unanswered]
        if not asked:
            return {}
        told = self("field values", lambda handle: nvml.nvmlDeviceGetFieldValues(handle, asked))
        answers: dict[FieldId, float] = {}
        for field, value in zip(asked, told or (), strict=False):
            if value.nvmlReturn == nvml.NVML_SUCCESS:
                answers[field] = _number(value)
            elif value.nvmlReturn in self._never_codes:
                self._unanswered.add(field)
            else:
                self._note_failure(nvml.NVMLError(value.nvmlReturn))
        return answers

    def supports(self, name: str) -> bool:
        """False once a call of this name was not supported."""
        return name not in self._unanswered

    def begin(self) -> None:
        """A new reading begins."""
        self._failed, self._answered = None, False

    def refuse_silence(self) -> None:
        """Raise CardError where every question since `begin` failed."""
        if self._failed is not None and not self._answered:
            raise CardError(f"GPU {self.index} answers nothing but errors: {self._failed}.")

    def forget(self) -> None:
        """The card was set up anew: ask again what it did not support."""
        self._unanswered.clear()

    def _note_failure(self, error: Exception) -> None:
        fault = card_fault(self.nvml, self.index, error)
        if fault is not None:
            raise fault from error
        self._failed = error


# nvmlValueType_t, and the member of the union that holds such a value.  The rest of the union is not zeroed.
_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


def _number(field: Any) -> float:
    number: float = getattr(field.value, _MEMBERS.get(field.valueType, "ullVal"))
    return number
