"""The links of a box in one view, as a matrix or as a map."""

from textual import events

from gpudeck.services.box.types import Demand, Snapshot
from gpudeck.widgets.glyphs import Glyphs, wrap
from gpudeck.widgets.lines import Line, LineView
from gpudeck.widgets.links.link_map import amiss, link_map
from gpudeck.widgets.links.matrix import matrix
from gpudeck.widgets.messages import DemandChanged


class LinkView(LineView):
    """How every two cards reach each other.  Scrolls where the cards outnumber the columns.

    As a map it shows traffic: it posts `DemandChanged` when that comes into view and when it leaves it.
    """

    HELP = """
    ## Links

    As a matrix, each cell says how two cards reach each other, in the words of `nvidia-smi topo -m`.  It names the way,
    not its speed: measure before you trust one way over another of its kind.  As a map, heavy frames are cards that
    NVLink joins, light ones NUMA nodes; each card tells what goes out of it and into it.  **t** turns from one to the
    other.
    """
    DEFAULT_CSS = """
    LinkView { height: auto; width: 1fr; max-height: 100%; }
    """

    def __init__(self, *, glyphs: Glyphs | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._glyphs = glyphs or Glyphs.unicode()
        self._snapshot: Snapshot | None = None
        self._as_map = False
        self._seen = False

    @property
    def as_map(self) -> bool:
        return self._as_map

    def show_as(self, *, as_map: bool) -> None:
        if as_map != self._as_map:
            self._as_map = as_map
            self._draw()
            self.scroll_home(animate=False)
            self._tell_demand()

    def show(self, snapshot: Snapshot) -> None:
        """Show the links of this snapshot's box, and on the map its traffic."""
        before, self._snapshot = self._snapshot, snapshot
        if (self._as_map and self._seen) or before is None or before.box != snapshot.box:
            self._draw()

    def use_glyphs(self, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        self._draw()

    def on_show(self, event: events.Show) -> None:  # noqa: ARG002
        self._seen = True
        self._draw()
        self._tell_demand()

    def on_hide(self, event: events.Hide) -> None:  # noqa: ARG002
        self._seen = False
        self._tell_demand()

    def on_resize(self) -> None:
        self._draw()

    def _tell_demand(self) -> None:
        self.post_message(DemandChanged("links", Demand.TRAFFIC if self._as_map and self._seen else Demand.NOTHING))

    def _draw(self) -> None:
        width = self.room.width
        if self._snapshot is None or not width:
            return
        box, glyphs = self._snapshot.box, self._glyphs
        if not box.gpus:
            self.show_lines([((f"{glyphs.caution} This box has no GPU.", "warning"),)])
        elif self._as_map:
            self.show_lines(link_map(self._snapshot, width, glyphs))
        else:
            lines: list[Line] = matrix(box, width)
            needed = max(sum(len(text) for text, _ in line) for line in lines)
            signs = {"error": glyphs.blocked, "warning": glyphs.caution}
            for text, style in amiss(box):
                lines += [((line, style),) for line in wrap(f"{signs[style]} {text}", width)]
            self.show_lines(lines, needed)
