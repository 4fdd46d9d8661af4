# ruff: noqa: E501  (scripts for the browser)
"""The page in a real browser: headless Chromium, as a reader meets it. Skipped where there is none.

Needs the extra ``browser`` (Selenium) and Chromium with its driver, for example Debian's ``chromium`` and ``chromium-driver``.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fedgraph import report
from fedgraph.cells.environment import Environment
from fedgraph.cells.result import Result
from fedgraph.cells.task_facts import CanaryAttackCellFacts, NodeClassificationCellFacts
from fedgraph.privacy.trust import Trust
from fedgraph.report.sections.base import SectionRecords
from tests.report.test_answer import cell

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


def cells(dataset: str, lift: float) -> list[Result]:
    """Two methods at node and at edge level, three settings, two budgets and none, two seeds."""
    found = []
    for seed, (trust, loss), (method, epsilon, accuracy) in itertools.product(
        range(2), ((Trust.CURATOR, 0.0), (Trust.SUMS, 0.01), (Trust.OWN_CLIENT, 0.05)),
        (("features", 1.0, 0.6), ("features", 8.0, 0.7), ("gap_edge", 1.0, 0.65), ("gap_edge", 8.0, 0.72),
         ("nonprivate", math.inf, 0.8)),
    ):  # fmt: skip
        attacked = method == "features"
        attack = CanaryAttackCellFacts(((500, 100, 70),), "a likelihood ratio of all released sums", "counting")
        facts = NodeClassificationCellFacts(protocol="inductive", split="random", attack=attack if attacked else None)
        found.append(cell(
            method, accuracy + lift - loss + seed / 100, epsilon=epsilon, trust=trust, unit="edge" if method == "gap_edge" else "node",
            seed=seed, dataset=dataset, facts=facts, epsilon_measured=0.4 if attacked else None, notes=("A note of the plan.",),
        ))  # fmt: skip
    return found


class Quiet:
    """A console that says nothing."""

    def say(self, text: str) -> None: ...
    def print(self, text: str) -> None: ...


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one task on two data sets, without a computation."""
    out = tmp_path_factory.mktemp("run")
    records = [
        SectionRecords("node_classification", "t", name, {"methods": [], "map": "tsne"}, tuple(cells(name, lift)))
        for name, lift in (("embedded/library", 0.0), ("embedded/another", 0.05))
    ]
    made = Environment(seed=1, platform="Linux", devices=("cpu",))
    report.write_report(out, "Which method shall I use?", "name: tiny\n", records, {}, made, Quiet())
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


UNFOLD = "document.querySelectorAll('details').forEach(d => { d.open = true; });"
DRAWN = "return [...document.querySelectorAll('%s')].every(c => c.querySelector('.vega-embed svg'))"


def wait(condition: Callable[[], Any]) -> Any:
    """What the condition gives, as soon as it is true."""
    until = time.monotonic() + 60
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def unfold(browser: Any) -> None:
    """Open everything, and wait until every picture is drawn."""
    js(browser, UNFOLD + "dispatchEvent(new Event('beforeprint'))")  # before a print all that is open is drawn
    assert wait(lambda: js(browser, DRAWN % ".chart"))


def test_no_label_of_a_line_covers_another(browser: Any, page: Path) -> None:
    show(browser, page)
    unfold(browser)
    covered = js(
        browser,
        """const found = [];
        for (const chart of document.querySelectorAll('.question .chart svg')) {
            const all = [...chart.querySelectorAll('text[font-weight="600"], .role-axis-label text')].map(t => [t.textContent, t.getBoundingClientRect()]);
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
    unfold(browser)
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1400, 1000, 400])
def test_nothing_is_cut_off(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    unfold(browser)
    beyond = js(
        browser,
        """const wide = document.documentElement.clientWidth + 1;
        return [...document.querySelectorAll('body *:not(.skip):not(.hide)')].filter(e => {
          const box = e.getBoundingClientRect();
          return box.width > 0 && (box.right > wide || box.left < -1) && !e.closest('svg') && !e.closest('.scroll');
        }).map(e => e.outerHTML.slice(0, 120));""",
    )
    assert beyond == []
    assert js(browser, "return document.documentElement.scrollWidth") <= width


def test_every_column_sorts_both_ways(browser: Any, page: Path) -> None:
    show(browser, page)
    js(browser, UNFOLD)
    heads = browser.find_elements("css selector", "table.everything th button")
    heads = heads[: len(heads) // 2]  # of the first of two tables
    values = """return [...document.querySelector('table.everything').tBodies[0].rows].map(r => r.cells[arguments[0]].dataset.v
        ?? r.cells[arguments[0]].textContent)"""
    assert len(heads) >= 8
    for index, head in enumerate(heads):
        for direction, backwards in (("ascending", False), ("descending", True)):
            js(browser, "arguments[0].click()", head)
            assert js(browser, "return arguments[0].parentElement.getAttribute('aria-sort')", head) == direction
            found = js(browser, values, index)
            if all(value.replace(".", "", 1).replace("e+", "").isdigit() for value in found):
                assert [float(v) for v in found] == sorted(map(float, found), reverse=backwards), head.text


def test_a_mark_tells_what_it_is_and_a_click_goes_to_its_row(browser: Any, page: Path) -> None:
    show(browser, page)
    unfold(browser)
    mark = "document.querySelectorAll('.question .chart .mark-symbol path')"
    dot = js(browser, f"const all = [...{mark}]; return all[all.length - 1]")
    webdriver.ActionChains(browser).move_to_element(dot).perform()
    assert wait(lambda: "ε provable" in browser.find_element("id", "vg-tooltip-element").text)
    said = browser.find_element("id", "vg-tooltip-element").text
    assert all(title in said for title in ("row", "method", "result", "ε provable", "ε published", "trust"))
    webdriver.ActionChains(browser).click(dot).perform()
    (row,) = wait(lambda: browser.find_elements("css selector", "table.everything tr.found"))
    assert row.is_displayed()
    assert row.find_element("css selector", "td").text in said


def test_a_link_opens_the_statement_it_leads_to(browser: Any, page: Path) -> None:
    show(browser, page)
    link = browser.find_element("css selector", "table.everything tbody tr td a").get_attribute("href")
    anchor = link.partition("#")[2]
    browser.get(f"file://{page}#{anchor}")
    browser.refresh()
    row = browser.find_element("id", anchor)
    assert row.is_displayed()
    assert "differs by at most ε = 1 " in row.text
    assert "A note of the plan." in row.find_element("xpath", "ancestor::details").text


@pytest.mark.parametrize("width", [1400, 400])
def test_the_first_pictures_are_drawn_unseen_and_the_still_one_goes(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width)
    assert wait(lambda: js(browser, DRAWN % "#answer .chart"))
    assert js(browser, "return scrollY") == 0
    assert browser.find_elements("css selector", "img.still") == []


def test_without_scripts_everything_can_still_be_read_and_printed(browser: Any, page: Path) -> None:
    show(browser, page, scripts=False)
    try:
        drawn = [d for d in browser.find_elements("css selector", "img.still") if d.is_displayed()]
        assert len(drawn) == 1, "all questions in one picture"
        assert all(image.size["width"] > 200 for image in drawn)
        assert len(browser.find_elements("css selector", "table.everything tbody tr")) == 30
        assert len(browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})["data"]) > 20_000
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: Any, page: Path, scheme: str) -> None:
    show(browser, page, scheme=scheme)
    unfold(browser)
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
    unfold(browser)
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
    bare = "return [...document.querySelectorAll('img:not([alt])')].map(e => e.outerHTML.slice(0, 80))"
    assert js(browser, bare) == []
    twice = "const ids = [...document.querySelectorAll('[id]')].filter(e => !e.closest('svg')).map(e => e.id); return ids.filter((id, i) => ids.indexOf(id) !== i)"
    assert js(browser, twice) == []
    assert js(browser, "return document.documentElement.lang") == "en"
    assert js(browser, "return [...document.querySelectorAll('table')].every(t => t.querySelector('th[scope]'))")
