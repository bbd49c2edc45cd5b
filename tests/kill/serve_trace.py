"""What happened to the rows of schedules, written down by triggers in the same transactions, and the rules that it must
keep (src/serve/schedule/planned.h): a slot is started once, a run that a kill interrupted is started again by the next
process and by no other, and what a user asked for starts once for each request."""
import re
import sqlite3

from stage import Failed

FIELDS = ("covered_unix_ms", "started_unix_ms", "ended_unix_ms", "wanted_unix_ms", "runs")
PAIRS = [(age, field) for field in FIELDS for age in ("old", "new")]


class Trace:
    def __init__(self, path):
        """`path` is a ledger that has all its schedules."""
        self.path = path
        self.schedules = {row["name"]: row for row in self.rows("SELECT * FROM serve_schedule")}
        with self.open() as database:
            database.executescript(
                "CREATE TABLE test_trace(id INTEGER PRIMARY KEY, name TEXT, "
                + ", ".join(f"{age}_{field}" for age, field in PAIRS) + ");"
                "CREATE TRIGGER test_trace AFTER UPDATE ON serve_schedule BEGIN INSERT INTO test_trace(name, "
                + ", ".join(f"{age}_{field}" for age, field in PAIRS) + ") VALUES (new.name, "
                + ", ".join(f"{age}.{field}" for age, field in PAIRS) + "); END;")

    def open(self):
        return sqlite3.connect(self.path, timeout=30)

    def mark(self):
        """A kill was here: no process has the ledger."""
        with self.open() as database:
            database.execute("INSERT INTO test_trace(name) VALUES ('')")

    def rows(self, sql):
        database = self.open()
        database.row_factory = sqlite3.Row
        rows = database.execute(sql).fetchall()
        database.close()
        return rows

    def check(self):
        """Raises Failed where a rule is broken.  Returns figures."""
        figures = {name: {"runs": 0, "repeated": 0, "asked": 0, "slots": 0} for name in self.schedules}
        killed, last = {}, {}
        for row in self.rows("SELECT * FROM test_trace ORDER BY id"):
            name = row["name"]
            if name == "":
                killed = {one: True for one in figures}
                continue
            before = last.get(name)
            if before is not None and any(row["old_" + field] != before["new_" + field] for field in FIELDS):
                raise Failed(f"a change of {name} is lost: {tuple(row)} after {tuple(before)}")
            if row["new_runs"] == row["old_runs"] + 1:
                count(figures[name], self.schedules[name], row, killed.get(name, False))
                killed[name] = False
            elif row["new_covered_unix_ms"] != row["old_covered_unix_ms"]:
                raise Failed(f"{name} is covered without a run: {tuple(row)}")
            last[name] = row
        return figures


def count(figures, schedule, row, killed):
    """A start, and the reason for it."""
    unended = row["old_started_unix_ms"] > 0 and row["old_ended_unix_ms"] == 0
    slots = slots_between(schedule, row["old_covered_unix_ms"], row["new_covered_unix_ms"])
    if row["new_covered_unix_ms"] < row["old_covered_unix_ms"]:
        raise Failed(f"{row['name']} is covered less than before: {tuple(row)}")
    if unended and not killed:
        raise Failed(f"{row['name']} starts while it runs: {tuple(row)}")
    if slots == 0 and not unended and row["old_wanted_unix_ms"] == 0:
        raise Failed(f"{row['name']} starts without a reason, a time ran twice: {tuple(row)}")
    figures["runs"] += 1
    figures["repeated"] += unended
    figures["asked"] += row["old_wanted_unix_ms"] != 0
    figures["slots"] += slots


def slots_between(schedule, after_ms, until_ms):
    """How many times of "every Ns" are later than the one and not later than the other; others have none soon."""
    found = re.fullmatch(r"every (\d+)s", schedule["at"])
    if found is None:
        return 0
    every_ms, created_ms = int(found.group(1)) * 1000, schedule["created_unix_ms"]
    return (until_ms - created_ms) // every_ms - (after_ms - created_ms) // every_ms
