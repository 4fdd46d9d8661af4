# ruff: noqa: E501  (scripts for the browser)
"""The page in a real browser: headless Chromium, as a reader meets it. Skipped where there is none.

Needs the extra ``browser`` (Selenium) and Chromium with its driver, for example Debian's ``chromium`` and ``chromium-driver``.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedgraph import report
from fedgraph.cells.environment import Environment
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import CanaryAttackCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.privacy.units import Assumption, Protection, Relation
from fedgraph.report.sections.base import SectionRecords
from fedgraph.worlds.world import world_of_trust
from tests.results import plain_result

webdriver = pytest.importorskip("selenium.webdriver", reason="the extra 'browser' (Selenium) is not installed")
CHROMIUM, DRIVER = (
    next(filter(None, map(shutil.which, names)), None)
    for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its driver on this machine"),
]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
SUMS = (Assumption.IDEAL_SECURE_AGGREGATION, Assumption.ONE_COLLUDER)


def cells(dataset: str, lift: float) -> list[Result]:
    """Two methods at node and at edge level, three settings, two budgets and none, two seeds."""
    found = []
    for seed in range(2):
        for trust, loss in ((Trust.CURATOR, 0.0), (Trust.SUMS, 0.01), (Trust.OWN_CLIENT, 0.05)):
            for method, epsilon, accuracy in (
                ("features", 1.0, 0.6), ("features", 8.0, 0.7), ("gap_edge", 1.0, 0.65), ("gap_edge", 8.0, 0.72),
                ("nonprivate", math.inf, 0.8),
            ):  # fmt: skip
                edge = method == "gap_edge"
                assumed = (*((Assumption.FEATURES_LABELS_PUBLIC,) if edge else ()), *(SUMS if trust is Trust.SUMS else ()))
                relation = Relation.EDGE_UNDIRECTED if edge else Relation.NODE_ZERO_OUT
                attack = CanaryAttackCellFacts(((500, 100, 70),), "a likelihood ratio of all released sums", "counting")
                facts = NodeClassificationCellFacts(
                    clients=10, partition="louvain", train_nodes=2396, protocol="inductive", split="random", cut_edges=100,
                    attack=attack if method == "features" else None,
                )  # fmt: skip
                reading, measured = "provable" if math.isfinite(epsilon) else "none", 0.4 if method == "features" else None
                found.append(plain_result(
                    "price-of-trust", dataset, method, "default", world_of_trust(trust), reading, epsilon, seed,
                    {"accuracy": accuracy + lift - loss + seed / 100}, facts, Protection(relation, trust.viewer, assumed),
                    1e-5, epsilon, epsilon, measured, "composition of Gaussian releases", {"model": epsilon},
                    ("A note of the plan.",), 1.5, (),
                ))  # fmt: skip
    return found


class Quiet:
    """A console that says nothing."""

    def say(self, text: str) -> None: ...
    def print(self, text: str) -> None: ...
    def table(self, title: str, header: Any, rows: Any) -> None: ...


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one task on two data sets, without a computation."""
    out = tmp_path_factory.mktemp("run")
    names = ("embedded/library", "embedded/another")
    params = {"methods": [], "map": "tsne"}
    records = [
        SectionRecords(f"price-{i}", "node_classification", "price-of-trust", name, params, tuple(made), ({},) * len(made))
        for i, name in enumerate(names)
        for made in [cells(name, i / 20)]
    ]
    made = Environment(seed=1, platform="Linux", devices=("cpu",))
    report.write_report(out, "tiny", "Which method shall I use?", "name: tiny\n", records, {}, made, Quiet())
    return out / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


def show(browser: Any, page: Path, width: int = 1400, scheme: str = "light", scripts: bool = True) -> None:
    """Open the page afresh in a window of this width."""
    browser.get_log("browser")
    browser.get_log("performance")
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get(f"file://{page}")


def js(browser: Any, script: str, *arguments: Any) -> Any:
    return browser.execute_script(script, *arguments)


ROWS = "const rows = [...document.querySelectorAll('#everything tbody tr')].filter(r => !r.hidden && !r.classList.contains('more'));"


def test_no_text_of_a_chart_covers_another(browser: Any, page: Path) -> None:
    show(browser, page)
    covered = js(
        browser,
        """document.querySelectorAll('details').forEach(d => { d.open = true; });
        const found = [];
        for (const chart of document.querySelectorAll('svg[role=img]')) {
            const all = [...chart.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
            all.forEach(([one, a], i) => all.slice(i + 1).forEach(([other, b]) => {
                const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (wide > 2 && high > 4) found.push(one + ' and ' + other + ' ' + wide + ' ' + high);
            }));
        }
        return found;""",
    )
    assert covered == []


def test_nothing_is_asked_of_the_network_and_nothing_is_complained_about(browser: Any, page: Path) -> None:
    show(browser, page)
    js(browser, "document.querySelectorAll('details').forEach(d => { d.open = true; })")
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1400, 1000, 400])
def test_nothing_is_cut_off(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    js(browser, "document.querySelectorAll('details').forEach(d => { d.open = true; })")
    js(browser, "document.querySelector('#everything td.open button').click()")
    beyond = js(
        browser,
        """const wide = document.documentElement.clientWidth + 1;
        return [...document.querySelectorAll('body *:not(.skip):not(.hide)')].filter(e => {
          const box = e.getBoundingClientRect();
          return box.width > 0 && (box.right > wide || box.left < -1) && !e.closest('svg');
        }).map(e => e.outerHTML.slice(0, 120));""",
    )
    assert beyond == []
    assert js(browser, "return document.documentElement.scrollWidth") <= width


def test_columns_collapse_and_an_opened_row_has_them_all(browser: Any, page: Path) -> None:
    counts = []
    for width in (1400, 1000, 400):
        show(browser, page, width)
        counts.append(
            js(browser, "return [...document.querySelectorAll('#everything th')].filter(h => h.offsetWidth > 0).length")
        )
    assert counts[0] > counts[1] > counts[2] >= 4
    button = browser.find_element("css selector", "#everything td.open button")
    button.click()
    told = browser.find_element("css selector", "#everything tr.more").text
    for title in ("ε published", "δ", "seeds", "noise chosen for", "Nobody who sees", "features"):
        assert (title in told) == (title != "Nobody who sees"), title
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert browser.find_elements("css selector", "#everything tr.more") == []


def test_every_column_sorts_both_ways(browser: Any, page: Path) -> None:
    show(browser, page)
    heads = browser.find_elements("css selector", "#everything th button")
    shown = [(i, h) for i, h in enumerate(heads) if h.is_displayed()]
    assert len(shown) >= 8
    for index, head in shown:
        title, found = head.text, []
        for direction in ("ascending", "descending"):
            head.click()
            assert js(browser, "return arguments[0].parentElement.getAttribute('aria-sort')", head) == direction, title
            found.append(
                js(
                    browser,
                    ROWS + "return rows.map(r => r.cells[arguments[0]].dataset.v ?? r.cells[arguments[0]].textContent)",
                    index + 1,
                )
            )
        numbers = head.find_element("xpath", "..").get_attribute("class").endswith("number") or title.startswith("trust")
        for values, backwards in zip(found, (False, True), strict=True):
            keys = [float(v.split(" ")[0]) for v in values] if numbers else values
            assert keys == sorted(keys, reverse=backwards), title


def test_filters_keep_what_they_name(browser: Any, page: Path) -> None:
    show(browser, page)
    total = js(browser, ROWS + "return rows.length")
    for name, value in (("unit", "edge"), ("trust", "curator"), ("method", "features")):
        js(browser, "const s = document.forms.filters.elements[arguments[0]]; s.value = arguments[1];"
           "s.dispatchEvent(new Event('input', {bubbles: true}))", name, value)  # fmt: skip
        kept = js(browser, ROWS + """const all = [...document.querySelectorAll('#filters select')], s = all.find(s => s.name === arguments[0]);
            return rows.map(r => s.options[Number(r.dataset.kinds.split(' ')[all.indexOf(s)])].value)""", name)  # fmt: skip
        assert set(kept) == {value}
        assert 0 < len(kept) < total
        assert browser.find_element("id", "shown").text == f"{len(kept)} of {total} rows"
        js(browser, "const s = document.forms.filters.elements[arguments[0]]; s.value = '';"
           "s.dispatchEvent(new Event('input', {bubbles: true}))", name)  # fmt: skip
    field = browser.find_element("name", "epsilon")
    field.send_keys("1")
    kept = js(browser, ROWS + "return rows.map(r => r.dataset.epsilon)")
    assert set(kept) == {"1"}


@pytest.mark.parametrize("how", ["hover", "tap"])
def test_every_number_explains_itself(browser: Any, page: Path, how: str) -> None:
    show(browser, page)
    tip = browser.find_element("id", "tip")
    row = browser.find_elements("css selector", "#everything tbody tr")[0]
    heads = browser.find_elements("css selector", "#everything thead th")
    beside = zip(heads, row.find_elements("css selector", "td"), strict=True)
    numbers = [cell for head, cell in beside if "number" in str(head.get_attribute("class")).split() and cell.is_displayed()]
    assert len(numbers) >= 4
    for cell in numbers:
        if how == "hover":
            webdriver.ActionChains(browser).move_to_element(cell).perform()
        else:
            cell.click()
        assert tip.is_displayed()
        assert len(tip.text) > 30
    webdriver.ActionChains(browser).send_keys("\ue00c").perform()  # Escape
    assert not tip.is_displayed()


def test_the_charts_answer_the_pointer_and_the_legend_hides(browser: Any, page: Path) -> None:
    show(browser, page)
    figure = browser.find_element("css selector", "#answer figure.drawn")
    dots = figure.find_elements("css selector", ".line use")
    assert len(figure.find_elements("css selector", "svg[role=img]")) == 2, "one panel per unit: edge and node"
    assert len(dots) > 6
    webdriver.ActionChains(browser).move_to_element(dots[0]).perform()
    said = browser.find_element("id", "tip").text
    assert "provable ε" in said
    assert "trust curator" in said
    count = "return [...arguments[0].querySelectorAll('.line use')].filter(e => e.getClientRects().length).length"
    button = next(b for b in figure.find_elements("css selector", ".legend button") if b.text == "features")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert 0 < js(browser, count, figure) < len(dots)
    button.click()
    assert js(browser, count, figure) == len(dots)


def test_a_link_opens_the_statement_it_leads_to(browser: Any, page: Path) -> None:
    show(browser, page)
    anchor = browser.find_element("css selector", "#everything tbody tr").get_attribute("data-link").removeprefix("#")
    browser.get(f"file://{page}#{anchor}")
    browser.refresh()
    row = browser.find_element("id", anchor)
    assert row.is_displayed()
    assert "differs by at most ε = 1 " in row.text
    statement = row.find_element("xpath", "ancestor::details")
    assert "Protected from" in statement.text
    assert "Protects each" in statement.text
    assert "A note of the plan." in statement.text
    assert "The attacker read" in statement.text
    missing = js(browser, "return [...document.querySelectorAll(\"a[href^='#']\")].map(a => a.getAttribute('href').slice(1))"
                 ".filter(id => !document.getElementById(id))")  # fmt: skip
    assert missing == []


def test_without_scripts_everything_can_still_be_read(browser: Any, page: Path) -> None:
    show(browser, page, scripts=False)
    try:
        drawn = [d for d in browser.find_elements("css selector", "figure.drawn svg[role=img]") if d.is_displayed()]
        assert len(drawn) >= 2
        assert all(image.size["width"] > 200 for image in drawn)
        assert len(browser.find_elements("css selector", "#everything tbody tr")) == 30
        assert not browser.find_element("id", "filters").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_it_prints(browser: Any, page: Path) -> None:
    show(browser, page)
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert len(printed["data"]) > 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: Any, page: Path, scheme: str) -> None:
    show(browser, page, scheme=scheme)
    js(browser, "document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert (js(browser, "return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") == (
        scheme == "light"
    )
    weak = js(
        browser,
        """const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
          return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const parse = c => c.match(/[\\d.]+/g).map(Number);
        const back = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
          if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), weak = [];
        for (let n; (n = walk.nextNode());) {
          const e = n.parentElement;
          if (!n.textContent.trim() || e.closest('script, style, [hidden], .hide, .skip, option') || !e.getClientRects().length) continue;
          const style = getComputedStyle(e), a = light(parse(e.closest('svg') ? (style.fill === 'none' ? style.color : style.fill)
            : style.color).slice(0, 3)), b = light(back(e));
          if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) weak.push(n.textContent.trim().slice(0, 40));
        }
        return weak;""",
    )
    assert weak == []


def test_a_screen_reader_finds_its_way(browser: Any, page: Path) -> None:
    show(browser, page)
    js(browser, "document.querySelectorAll('details').forEach(d => { d.open = true; })")
    levels = js(browser, "return [...document.querySelectorAll('h1, h2, h3, h4:not([role])')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels)), "no level is skipped"
    nameless = js(
        browser,
        """const named = e => e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.labels?.length;
        return [...document.querySelectorAll('a, button, select, input, summary, output, section:not(main section section)')]
          .filter(e => !(named(e) || e.getAttribute('aria-labelledby'))).map(e => e.outerHTML.slice(0, 80));""",
    )
    assert nameless == []
    bare = "return [...document.querySelectorAll('img:not([alt]), svg[role=img]:not([aria-label])')].map(e => e.outerHTML.slice(0, 80))"
    assert js(browser, bare) == []
    twice = (
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.filter((id, i) => ids.indexOf(id) !== i)"
    )
    assert js(browser, twice) == []
    assert js(browser, "return document.documentElement.lang") == "en"
    assert js(browser, "return [...document.querySelectorAll('table')].every(t => t.querySelector('th[scope]'))")
