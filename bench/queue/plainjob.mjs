// plainjob as a contestant of script/bench queue, over better-sqlite3.
//
//   plainjob.mjs enqueue FILE JOBS SLICE own|full               jobs/s
//   plainjob.mjs drain   FILE JOBS PROCESSES own|full           jobs/s
//
// `own` keeps its own pragma (synchronous = NORMAL, a power cut may undo jobs reported
// done); `full` sets synchronous = FULL, as our ledger does.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { fork } from "node:child_process";
import { once } from "node:events";
import { performance } from "node:perf_hooks";

const require = createRequire(pathToFileURL(process.env.QUEUE_PEERS + "/"));
const Database = require("better-sqlite3");
const { better, defineQueue, defineWorker } = await import(
  pathToFileURL(process.env.QUEUE_PEERS + "/node_modules/plainjob/dist/plainjob.js")
);

const [, , verb, file, ...rest] = process.argv;
const quiet = { error: console.error, warn() {}, info() {}, debug() {} };

function queueOf(mode) {
  const database = new Database(file);
  const queue = defineQueue({ connection: better(database), logger: quiet });
  if (mode === "full") database.pragma("synchronous = FULL");
  return queue;
}

function enqueue(jobs, slice, mode) {
  const queue = queueOf(mode);
  const start = performance.now();
  for (let first = 0; first < jobs; first += slice) {
    const data = [];
    for (let i = first; i < Math.min(jobs, first + slice); i++) data.push({ message: i });
    queue.addMany("none", data);
  }
  console.log(jobs / ((performance.now() - start) / 1000));
  queue.close();
}

async function work(jobs, mode) {
  const queue = queueOf(mode);
  let done = 0;
  const worker = defineWorker("none", () => {}, {
    queue,
    logger: quiet,
    onCompleted: () => {
      if (++done === jobs) worker.stop();
    },
  });
  const start = performance.now();
  await worker.start();
  const seconds = (performance.now() - start) / 1000;
  queue.close();
  return seconds;
}

// A worker does not return to its event loop while there are jobs: several processes
// take equal shares, and the slowest one counts.
async function drain(jobs, processes, mode) {
  const seconds = [];
  if (processes === 1) seconds.push(await work(jobs, mode));
  else {
    const share = String(Math.floor(jobs / processes));
    const children = Array.from({ length: processes }, () =>
      fork(process.argv[1], ["child", file, share, mode]),
    );
    const ends = await Promise.all(children.map((one) => once(one, "message")));
    seconds.push(...ends.flat().filter((end) => typeof end === "number"));
  }
  console.log(jobs / Math.max(...seconds));
}

switch (verb) {
  case "enqueue": enqueue(Number(rest[0]), Number(rest[1]), rest[2]); break;
  case "drain": await drain(Number(rest[0]), Number(rest[1]), rest[2]); break;
  case "child": process.send(await work(Number(rest[0]), rest[1])); process.disconnect(); break;
  default: throw new Error(`what is ${verb}?`);
}
