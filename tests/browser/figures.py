"""How long something takes in the browser, and how much of a processor.  On a machine that does other things, times say more about
those: limits of times are judged only if it is quiet, limits of the processor's time always, but more generously."""
import os


def share(values, part):
    """0.95: what 95 of 100 are below."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def quiet():
    """Few enough others wait for a processor."""
    return os.getloadavg()[0] < 0.7 * (os.cpu_count() or 1) + 0.6


def tell(what, values, unit="ms", more=""):
    print(f"{what}: {len(values)}, p50 {share(values, .5):.1f} p95 {share(values, .95):.1f} p99 {share(values, .99):.1f} max {max(values):.1f} {unit}{more}"
          f"{'' if quiet() else f' (load {os.getloadavg()[0]:.0f}: not judged)'}", flush=True)


def judge_times(measure, part, limit):
    """`measure` gives times.  It is asked three times at most: something else may have run meanwhile."""
    for _ in range(3):
        values = measure()
        if not quiet() or share(values, part) <= limit:
            return
    raise AssertionError((part, limit, sorted(values)[-20:]))


def cpu_limit(ms):
    """Of the processor's time: it goes slower where others use the same caches and cores."""
    return ms if quiet() else 3 * ms


class Meter:
    """What a page costs: milliseconds of the main thread on a processor, and its heap."""

    def __init__(self, page):
        self.page = page
        page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def _metric(self, name):
        return next(one["value"] for one in self.page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"] if one["name"] == name)

    def ms(self):
        return self._metric("TaskDuration") * 1000

    def heap(self):
        """Megabytes that are in use."""
        self.page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        return self.page.driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"] / 1e6
