"""assistant_test.py TIDEMARK CLOUD AXE.JS SEED: the records of the mail assistant on the page of `tidemark serve`, as stories of
a person (J18, J20).  The stories run in order on one home that SEED filled; AXE.JS, "" if it is missing, judges every view."""
import subprocess
import sys

from selenium.webdriver.common.keys import Keys

import page_test
from page_test import answer, judge, paired
from stage import Page, Stage, USER, run_stories, until

BEN = "ben@example.com"
TABLES = [("emails", "Subject"), ("events", "Detail"), ("calls", "Tokens"), ("runs", "Profile")]
ROUTES = ["/assistant", *(f"/assistant?table={name}" for name, _ in TABLES), f"/thread/{USER}/story", f"/thread/{BEN}/hostile"]


def loaded(page):
    until(lambda: page.count(".grey") == 0 and page.text("main").strip() and page.count(".grid, .facts, .empty") > 0, "it is loaded")


def choose(page, label, value):
    """Of a filter, as a person does with the list that opens."""
    page.script("""const field = [...document.querySelectorAll('.filters .field')].find((one) => one.querySelector('span').textContent === arguments[0])
        const box = field.querySelector('select')
        box.value = arguments[1]
        box.dispatchEvent(new Event('change', { bubbles: true }))""", label, value)


def rows(page):
    return page.count(".grid > .row")


def nothing_ran(page):
    """Nothing that a stranger wrote became markup, a script, or a request."""
    assert page.script("return window.owned === undefined && !document.title.includes('owned')")
    assert page.count("main script, main img, main iframe") == 0
    assert page.script("return performance.getEntriesByType('resource').every((one) => one.name.startsWith(location.origin))")


# ---- stories

def users_with_their_labels_and_settings(stage, page):
    page.open()
    page.sees("This browser is not known. Run: tidemark open")
    answer(stage, page, "y")
    paired(page)
    page.go("/assistant", "Assistant")
    page.sees(USER, ".columns")
    page.sees("9 labels, 2 settings", ".columns")
    page.sees("1 drafted", ".columns")
    page.click("9 labels", "summary")
    page.sees("🤖 AI/Needs Response", ".columns")
    page.sees("(hidden)", ".columns")
    assert "hunter2" not in page.text()
    page.sees("No account yet. Run: tidemark account add chat", "main")
    judge(page, "users")


def tables_by_key_and_tab(stage, page):
    page.script("document.querySelector('h1').focus()")
    for i, (name, column) in enumerate(TABLES):
        page.keys(str(i + 2))
        page.sees(column, f".a-{name} > .head")
        until(lambda: rows(page) > 0, f"{name} has rows")
        assert page.script("return document.querySelector('.tabs [aria-current=page]').getAttribute('href')").endswith("table=" + name)
        judge(page, name)
    page.keys("1")
    page.sees("Chat models", "main")
    page.click("Threads", ".tabs a")
    page.sees("100 of 122", ".count")


def filters_narrow_and_can_be_linked(stage, page):
    choose(page, "Status", "drafted")
    page.sees("1 of 1", ".count")
    page.sees("Harbour plan", ".a-emails")
    assert "status=drafted" in page.driver.current_url
    page.driver.refresh()
    page.sees("1 of 1", ".count")
    choose(page, "Status", "")
    page.sees("100 of 122", ".count")
    choose(page, "Account", BEN)
    page.sees("2 of 2", ".count")
    choose(page, "Category", "payment_request")
    page.sees("Nothing matches.", "main")
    judge(page, "nothing matches")
    page.go("/assistant?table=emails", "Assistant")
    until(lambda: rows(page) == 100, "a page of them")
    page.script("document.querySelector('h1').focus()")
    page.keys("/")
    until(lambda: page.script("return document.activeElement.type === 'search'"), "the field for the sender has the focus")
    page.keys("sender7@example.org", Keys.ENTER)
    until(lambda: rows(page) == 1, "one sender")
    page.sees("Subject number 7", ".a-emails")
    page.go("/assistant?table=emails", "Assistant")
    until(lambda: rows(page) == 100, "a page of them")
    page.click("Show more")
    page.sees("122 of 122", ".count")
    until(lambda: rows(page) == 122, "all of them")
    choose(page, "First", "oldest")
    until(lambda: "Subject number 0" in page.text(".grid > .row"), "the oldest is the first")


def a_thread_is_one_timeline(stage, page):
    page.go("/assistant?table=emails&status=drafted", "Assistant")
    page.sees("Harbour plan", ".a-emails")
    page.script("document.querySelector('h1').focus()")
    page.keys("j", Keys.ENTER)
    page.sees("Thread", "h1")
    page.sees("It asks for a date.", "main")
    whats = page.script("return [...document.querySelectorAll('.timeline > li > b')].map((one) => one.textContent)")
    assert whats == ["run", "call", "event", "call", "call", "call", "draft", "event"], whats
    page.sees("draft_created: r-77", ".timeline")
    assert "tok-never-shown" not in page.text()
    judge(page, "a timeline")
    # Prompt and answer are loaded when they are opened, and JSON is shown as names and texts.
    assert "You sort mail." not in page.text()
    page.click("Prompt and answer", "summary")
    page.sees("You sort mail.", ".timeline")
    page.sees("When can you come?\nBen", ".timeline")
    page.sees("needs_response", ".timeline .texts:last-child")
    judge(page, "prompt and answer")
    page.click("Tools of run", "summary")
    page.sees("1. search_archive", ".timeline")
    page.sees("Nothing to add.", ".timeline")
    page.script("document.querySelector('h1').focus()")
    page.keys("u")
    page.sees("1 of 1", ".count")
    until(lambda: page.script("return document.activeElement.matches('.row.marked')"), "back at its row")


def calls_and_runs_in_full(stage, page):
    page.go("/assistant?table=calls&state=open", "Assistant")
    page.sees("agent", ".a-calls")
    page.script("document.querySelector('h1').focus()")
    page.keys("j", Keys.ENTER)
    page.sees("Model call", "h1")
    page.sees("No answer yet.", "main")
    page.sees("hello", ".texts")
    judge(page, "a call")
    page.go("/assistant?table=runs&thread=story", "Assistant")
    until(lambda: rows(page) == 1, "its run")
    page.find(".a-runs a").click()
    page.sees("Agent run", "h1")
    page.sees("harbour", ".texts")
    judge(page, "a run")
    page.click("of this thread", "main a")
    until(lambda: rows(page) == 4, "the calls of the thread")
    page.go("/call/999999", "Model call")
    page.sees("there is no call 999999", "main")


def hostile_text_is_text(stage, page):
    page.go(f"/thread/{BEN}/hostile", "Thread")
    page.sees('<img src=x onerror="document.title=\'owned\'"><script>window.owned=1</script>', ".card h2")
    for summary in page.driver.find_elements("css selector", ".timeline summary"):
        summary.click()
    until(lambda: page.count(".timeline .texts") >= 5, "all texts are shown")
    page.sees("<script>window.owned=1</script>", ".timeline .texts")
    page.sees("1. <b>x</b>", ".timeline")
    page.sees("<img src=x onerror=alert(1)>", ".timeline")
    # What would turn the order of writing, or control a terminal, is seen.
    assert "\u202e" not in page.text() and "\x1b" not in page.text() and "\ufffd gnp.exe" in page.text(), page.text(".card h2")
    nothing_ran(page)
    judge(page, "hostile text")
    for route in ROUTES[1:5]:
        page.go(route, "Assistant")
        until(lambda: rows(page) > 0, f"{route} has rows")
        nothing_ran(page)


def both_themes_and_small_screens(stage, page):
    for theme in ("dark", "light"):
        page.theme(theme)
        for route in ROUTES:
            page.go(route)
            loaded(page)
            judge(page, f"{route} in {theme}")
    for width in (360, 320):
        page.size(width, 740)
        for route in ROUTES:
            page.go(route)
            loaded(page)
            wide = page.script("return document.scrollingElement.scrollWidth")
            assert wide <= width, f"{route} is {wide} px wide at {width}"
    page.size(1280, 860)
    packed = page.script("return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/app/')).reduce((sum, entry) => sum + entry.encodedBodySize, 0)")
    assert 0 < packed <= 90000, packed
    complaints = page.complaints()
    assert not complaints, complaints


def main():
    if sys.argv[3]:
        with open(sys.argv[3], encoding="utf-8") as file:
            page_test.AXE = file.read()
    else:
        print("skipped: axe-core is missing; no view is judged for accessibility", flush=True)
    stage = Stage(sys.argv[1], sys.argv[2])
    page = None
    try:
        stage.start_cloud("--seed", "5", "--mailbox", f"{USER}=3", "--token", f"tok={USER}")
        stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")
        subprocess.run([sys.argv[4], stage.home, "120"], check=True, timeout=120)
        stage.start_serve()
        page = Page(stage)
        return run_stories([users_with_their_labels_and_settings, tables_by_key_and_tab, filters_narrow_and_can_be_linked, a_thread_is_one_timeline,
                            calls_and_runs_in_full, hostile_text_is_text, both_themes_and_small_screens], stage, page)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    sys.exit(main())
