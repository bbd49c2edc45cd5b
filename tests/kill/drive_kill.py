#!/usr/bin/env python3
"""Kills a drive's sync with SIGKILL at random moments: DRIVE_RUNNER TIDEMARK-CLOUD [--kills N] [--seed N]

In each direction, and with edits on both sides while processes die.  After the last life both trees must be
equal by hash, every content that a user finished and none deleted must exist (I1), no file of ours may be left (I16),
and what was transferred must be at most what was killed in flight more than the contents (I9).
Ends with one line "drive kill: ok ..." or "drive kill: FAILED ...".
"""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

USER = "me@example.org"
WORKERS = 16  # of drive_runner
FILE_BYTES = 20000


class Failed(Exception):
    pass


class Cloud:
    def __init__(self, program, *more):
        self.process = subprocess.Popen(
            [program, "--listen", "127.0.0.1:0", "--quiet", "--quota", "off", "--token", f"t={USER}",
             "--mailbox", f"{USER}=0", *more], stdout=subprocess.PIPE, text=True)
        self.origin = self.process.stdout.readline().split()[1]

    def ask(self, path, body=None):
        data = None if body is None else json.dumps({"user": USER, **body}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.origin + path, data)) as answer:
            return answer.read().decode()

    def put(self, path, content):
        self.ask("/_cloud/drive/put", {"path": path, "content": content})

    def tree(self):
        return sorted(self.ask(f"/_cloud/drive?user={USER}").splitlines())

    def close(self):
        self.process.kill()
        self.process.wait()


class Drive:
    def __init__(self, runner, cloud):
        self.runner, self.cloud = runner, cloud
        self.dir = tempfile.mkdtemp(prefix="tidemark-drive-kill-")
        self.root = os.path.join(self.dir, "root")
        os.mkdir(self.root)
        self.lives = self.kills = 0

    def start(self):
        self.lives += 1
        return subprocess.Popen([self.runner, os.path.join(self.dir, "state"), self.root, self.cloud.origin],
                                stdout=subprocess.PIPE, text=True)

    def run(self):
        process = self.start()
        out, _ = process.communicate(timeout=600)
        if process.returncode != 0:
            raise Failed(f"a life ended with {process.returncode}: {out}")
        return json.loads(out)

    def run_and_kill(self, seconds):
        """True: it was killed."""
        process = self.start()
        try:
            process.communicate(timeout=seconds)
            if process.returncode != 0:
                raise Failed(f"a life ended with {process.returncode}")
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.kills += 1
            return True

    def tree(self):
        lines = subprocess.run([self.runner, "tree", self.root], stdout=subprocess.PIPE, text=True,
                               check=True).stdout.splitlines()
        return sorted(line for line in lines if ".tidemark-" not in line)

    def ours(self):
        """Names of ours: parts of downloads, files that were replaced."""
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.root) for name in names
                if name.startswith(".tidemark-") and name != ".tidemark-root"]

    def check_ours(self):
        """None is left (I16).  Files that were replaced are kept for ten seconds, those of a crash for a minute."""
        for _ in range(8):
            if not self.ours():
                return
            time.sleep(11)
            self.run()
        raise Failed(f"files of ours are left: {self.ours()[:3]}; state in {self.dir}")

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def compare(self):
        for _ in range(6):
            self.run()
            here, online = self.tree(), self.cloud.tree()
            if here == online:
                return here
        only_here = [line for line in here if line not in online][:5]
        only_online = [line for line in online if line not in here][:5]
        raise Failed(f"trees differ; here: {only_here}; online: {only_online}; state in {self.dir}")

    def close(self):
        shutil.rmtree(self.dir)


def contents_of(tree):
    return {line.split(" ", 3)[2] for line in tree if line.startswith("file ")}


def downloaded_bytes(cloud):
    return json.loads(cloud.ask("/_cloud/stats"))["users"][USER]["drive"]["bytes"]


def bytes_of(tree):
    return sum(int(line.split(" ", 3)[1]) for line in tree)


def one_way(options, rng, down):
    """A tree crosses in one direction; each life is killed, until one gets to the end."""
    more = ["--drive", f"{USER}={options.files},size={FILE_BYTES}"] if down else []
    cloud = Cloud(options.cloud, "--latency", "3", *more)
    drive = Drive(options.runner, cloud)
    try:
        if not down:
            for i in range(options.files):
                drive.write(f"d{i % 17}/e{i % 5}/f{i}.txt", f"{i} " * (50 + i * 7))
            before = contents_of(drive.tree())
        else:
            before = contents_of(cloud.tree())
        limit = 0.15
        while drive.run_and_kill(rng.uniform(0.02, limit)):
            limit = min(limit * 1.03, 2.0)
        tree = drive.compare()
        if contents_of(tree) != before:
            raise Failed(f"contents changed; state in {drive.dir}")
        if any(".conflict-" in line for line in tree):
            raise Failed(f"a copy was made; state in {drive.dir}")
        drive.check_ours()
        # Each kill costs at most what was in flight (I9).
        if down and downloaded_bytes(cloud) > bytes_of(tree) + drive.kills * WORKERS * FILE_BYTES:
            raise Failed(f"{downloaded_bytes(cloud)} bytes came for {bytes_of(tree)}")
        again = drive.run()
        if again["downloaded"] + again["uploaded"] > 0:
            raise Failed("a sync without news transferred something")
        drive.close()
        return drive.kills
    finally:
        cloud.close()


def both_ways(options, rng, kills):
    """Users edit, add, move and remove on both sides, while processes die."""
    cloud = Cloud(options.cloud, "--latency", "3")
    drive = Drive(options.runner, cloud)
    written = {}
    try:
        for number in range(30):
            cloud.put(f"on{number % 4}/f{number}.txt", f"online {number}")
            drive.write(f"here{number % 4}/f{number}.txt", f"here {number}")
        drive.run()
        step = 0
        while drive.kills < kills:
            step += 1
            name = f"on{rng.randrange(4)}/n{step}.txt"
            cloud.put(name, f"finished online {step}")
            written[f"finished online {step}"] = name
            name = f"here{rng.randrange(4)}/m{step}.txt"
            drive.write(name, f"finished here {step}")
            written[f"finished here {step}"] = name
            cloud.put(f"on{rng.randrange(4)}/f{rng.randrange(30)}.txt", f"edited online {step}")
            drive.write(f"here{rng.randrange(4)}/f{rng.randrange(30)}.txt", f"edited here {step}")
            drive.run_and_kill(rng.uniform(0.02, 0.5))
        drive.compare()
        for text, name in written.items():
            with open(os.path.join(drive.root, name), encoding="utf-8") as file:
                if file.read() != text:
                    raise Failed(f"{name} is not what was written; state in {drive.dir}")
        drive.check_ours()
        copies = [line for line in drive.tree() if ".conflict-" in line]
        if copies:  # every file is edited on one side only (I19)
            raise Failed(f"copies were made: {copies[:3]}; state in {drive.dir}")
        drive.close()
        return drive.kills
    finally:
        cloud.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("cloud")
    parser.add_argument("--kills", type=int, default=200, help="in each direction, at least")
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    counts = {"down": 0, "up": 0, "both": 0}
    try:
        while counts["down"] < options.kills:
            counts["down"] += one_way(options, rng, True)
        while counts["up"] < options.kills:
            counts["up"] += one_way(options, rng, False)
        counts["both"] = both_ways(options, rng, options.kills)
    except Failed as why:
        print(f"drive kill: FAILED (seed {options.seed}, {counts}): {why}")
        return 1
    print(f"drive kill: ok, {counts['down']} kills downwards, {counts['up']} upwards, {counts['both']} both ways")
    return 0


if __name__ == "__main__":
    sys.exit(main())
