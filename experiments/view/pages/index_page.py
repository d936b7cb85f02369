"""The first page: everything that lies under the given paths, the latest first."""

from collections.abc import Mapping

from lakewright.experiments.view.catalogue import Catalogue, Kind
from lakewright.experiments.view.pages.cards import card_of
from lakewright.experiments.view.templating import Page


def index_page(catalogue: Catalogue, query: Mapping[str, list[str]]) -> Page:
    """Everything there is, by kind; the runs of a study are on its own page."""
    items = catalogue.items()
    studies = tuple(f"{item.name}/" for item in items if item.kind is Kind.STUDY)
    cards = [card_of(item) for item in items if not item.name.startswith(studies)]
    groups = {kind: [card for card in cards if card.item.kind is kind] for kind in Kind}
    shown = {kind: found for kind, found in groups.items() if found}
    live = any(card.state == "running" for card in cards)
    values = {"groups": shown, "total": len(cards), "roots": catalogue.roots()}
    values |= {"maps": [] if cards else catalogue.maps()}
    return Page("Lakewright", "index.html", values, (), live)
