"""screenshots.py TIDEMARK CLOUD DIR: pictures of the page's main views, on a home that looks like one in use."""
import os
import subprocess
import sys

from stage import Page, Stage, USER, until

WIDTH, HEIGHT = 1040, 640


def pair(stage, page):
    page.open()
    until(lambda: page.text(".code").strip(), "a code")
    subprocess.run([stage.tidemark, "--home", stage.home, "open"], input="y\n", capture_output=True, text=True, env=stage.env, timeout=60, check=True)
    until(lambda: page.text("#live") == "live", "the page is live")


def fill(stage):
    """Two accounts and a site that are up to date, a failed item, a schedule."""
    stage.run("account", "add", "gmail", "ben@example.com", "--endpoint", stage.origin, "--bearer", "tok-ben")
    stage.run("mail", "sync", "--quiet")
    bad = stage.deliver("From: Harbour Office <office@harbour.example>\r\nTo: ben@example.com\r\nSubject: plan\r\n\r\nx\r\n", "ben@example.com")
    stage.deliver("From: Mia Lund <mia@lund.example>\r\nTo: ben@example.com\r\nSubject: photos\r\n\r\nx\r\n", "ben@example.com")
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.users.messages.get", "id": bad, "fault": "500"})
    stage.run("mail", "sync", "--quiet", code=3)
    stage.ask_cloud("/_cloud/faults", method="DELETE")
    stage.run("account", "add", "console", "sc-domain:example.org", "--endpoint", stage.origin, "--bearer", "tok")
    stage.run("console", "backfill", "sc-domain:example.org", "--quiet")
    stage.run("schedule", "add", "--at", "every 15min", "mail", "sync")
    stage.run("account", "add", "gmail", USER, "--endpoint", stage.origin, "--bearer", "tok")


def take(page, where, name):
    page.driver.save_screenshot(os.path.join(where, name + ".png"))
    print(os.path.join(where, name + ".png"))


def shoot(stage, page, where):
    page.go("/console/console", "Console /")
    page.sees("final", ".calendar")
    take(page, where, "console")
    # A long sync: its middle is what there is to see.
    stage.ask_cloud("/_cloud/faults", {"method": "gmail.users.messages.get", "fault": "latency", "ms": 120})
    page.go(f"/mail/{USER}", "Mail /")
    page.click("Sync")
    page.go("/", "Home")
    page.sees("done in", ".accounts")
    until(lambda: page.count(".spark-line") > 0 and page.script("return +document.querySelector('.account.busy b').textContent.replace(',', '')") > 300, "a good part is stored")
    page.script("document.getElementById('told').replaceChildren()")
    take(page, where, "home")
    page.go(f"/mail/{USER}", "Mail /")
    page.sees("mail.fetch", "main")
    take(page, where, "mail")
    page.go(f"/jobs?state=pending&account={USER}", "Jobs")
    page.sees("mail.fetch", ".jobs")
    page.keys("j", "w")
    page.sees("by itself", ".why")
    take(page, where, "why")
    page.theme("dark")
    page.go("/search?q=invoice", "Search")
    page.sees("nvoice", ".messages")
    take(page, where, "search")


def main():
    tidemark, cloud, where = sys.argv[1:]
    stage = Stage(tidemark, cloud)
    page = None
    try:
        stage.start_cloud("--seed", "11", "--latency", "10", "--mailbox", f"{USER}=2400,size=6000", "--mailbox", "ben@example.com=400", "--token", f"tok={USER}", "--token", "tok-ben=ben@example.com",
                          "--site", f"sc-domain:example.org={USER},rows=20")
        stage.start_serve()
        fill(stage)
        page = Page(stage, WIDTH, HEIGHT)
        pair(stage, page)
        shoot(stage, page, where)
    finally:
        if page is not None:
            page.end()
        stage.end()


if __name__ == "__main__":
    main()
