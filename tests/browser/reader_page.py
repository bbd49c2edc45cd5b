"""The reader as a test sees it: rows of the list, the marked one, counts of folders."""
import os

from selenium.webdriver.common.keys import Keys

from stage import Page, until
from walls import Between


class Reading(Page):
    """Looks at `address`, or at the stage's server."""
    address = None

    def open(self, route=""):
        self.driver.get((self.address or self.stage.page) + ("#" + route if route else ""))

    def row(self, words):
        """The row whose label has these words."""
        return self.script("return [...document.querySelectorAll('.mrow:not([hidden]):not(.ghost)')].find((one) => one.getAttribute('aria-label').includes(arguments[0]))", words)

    def rows(self):
        """Labels of what is shown, from the top."""
        return self.script("""return [...document.querySelectorAll('.mrow:not([hidden]):not(.ghost)')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((one) => one.getAttribute('aria-label'))""")

    def marked(self):
        return self.script("return document.querySelector('.mrow.marked:not([hidden])')?.getAttribute('aria-label') ?? ''")

    def reads(self, words):
        """Waits until a message that is shown in full has these words."""
        until(lambda: self.script("""return [...document.querySelectorAll('.turn.open')].some((one) =>
            (one.innerText + (one.querySelector('iframe')?.contentDocument?.body?.innerText ?? '')).includes(arguments[0]))""", words), f'"{words}" in a message')

    def names(self, *roles):
        """What the browser tells a screen reader: the names of all that has one of these roles."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [node.get("name", {}).get("value", "") for node in nodes if not node["ignored"] and node["role"]["value"] in roles]

    def total(self):
        """How many rows the list has."""
        return int(self.find(".vlist").get_attribute("aria-rowcount"))

    def marked_place(self):
        """Of the marked row, from 1; 0: none that is here."""
        return int(self.script("return document.querySelector('.mrow.marked:not([hidden]):not(.ghost)')?.getAttribute('aria-rowindex') ?? '0'"))

    def at_top(self):
        """The label of the row at the top of the view, and where it is; None: it is not here."""
        return self.script("""const list = document.querySelector('.vlist'), at = list.getBoundingClientRect()
            const row = document.elementFromPoint(at.left + 200, at.top + 20).closest('.mrow')
            return row && !row.classList.contains('ghost') ? [row.getAttribute('aria-label'), Math.round(row.getBoundingClientRect().top - at.top)] : null""")

    def loaded(self):
        until(lambda: len(self.rows()) > 0 and self.count(".mrow.ghost:not([hidden])") == 0, "rows")

    def focus_list(self):
        self.script("document.querySelector('.vlist').focus()")

    def top(self):
        """The first row is marked, and it is there."""
        self.keys(Keys.HOME)
        until(lambda: self.count('.mrow.marked[aria-rowindex="1"]:not([hidden]):not(.ghost)'), "the first row is marked")

    def focused(self):
        """The class or id of what has the focus."""
        return self.script("return document.activeElement.id || document.activeElement.className")

    def count_of(self, folder):
        return int(self.script("return [...document.querySelectorAll('.folders a')].find((one) => one.firstChild.textContent === arguments[0])?.querySelector('b')?.firstChild.textContent.replace(',', '') ?? '0'", folder))


def address_of(stage):
    """Of `serve`; with PAGE_WEB of what stands in front of it."""
    return Between(stage.port(), {}).address if os.environ.get("PAGE_WEB") else stage.page
