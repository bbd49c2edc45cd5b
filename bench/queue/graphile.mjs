// graphile-worker as a contestant of script/bench queue.
//
//   graphile.mjs migrate URL
//   graphile.mjs enqueue URL JOBS SLICE KEYS(0|1)         jobs/s
//   graphile.mjs drain   URL JOBS CONCURRENT LOCAL DELAY PROCESSES   jobs/s
//   graphile.mjs latency URL SAMPLES same|other           ms: p50 p99
//   graphile.mjs idle    URL SECONDS                      "ready", then % of a core
//
// Settings are those of its performance page: a local queue, completions in
// batches, prepared statements, no log line for each job (NO_LOG_SUCCESS=1).
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { once } from "node:events";
import { fork } from "node:child_process";
import { performance } from "node:perf_hooks";

// Peers are in a cache directory, not next to this file.
const require = createRequire(pathToFileURL(process.env.QUEUE_PEERS + "/"));
const { run, makeWorkerUtils, Logger } = await import(
  pathToFileURL(require.resolve("graphile-worker"))
);
const { Pool } = require("pg");

const [, , verb, url, ...rest] = process.argv;
const logger = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});
const poolOf = (max) => {
  const pool = new Pool({ connectionString: url, max });
  pool.on("error", (error) => console.error(error.message));
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
};

async function utilsOf(pool) {
  return makeWorkerUtils({ pgPool: pool, logger });
}

async function migrate() {
  const pool = poolOf(2);
  const utils = await utilsOf(pool);
  await utils.migrate();
  await utils.release();
  await pool.end();
}

async function enqueue(jobs, slice, keys) {
  const pool = poolOf(2);
  const utils = await utilsOf(pool);
  const start = performance.now();
  for (let first = 0; first < jobs; first += slice) {
    const specs = [];
    for (let i = first; i < Math.min(jobs, first + slice); i++)
      specs.push({
        identifier: "none",
        payload: { message: i },
        jobKey: keys ? `message-${String(i).padStart(8, "0")}` : undefined,
      });
    await utils.addJobs(specs);
  }
  console.log(jobs / ((performance.now() - start) / 1000));
  await utils.release();
  await pool.end();
}

function start(tasks, pool, concurrentJobs, local, delay) {
  return run({
    pgPool: pool,
    logger,
    noHandleSignals: true,
    taskList: tasks,
    preset: {
      worker: {
        concurrentJobs,
        ...(local > 0 ? { localQueue: { size: local } } : {}),
        completeJobBatchDelay: delay,
        failJobBatchDelay: delay,
      },
    },
  });
}

// Runs until `jobs` are handled, or the parent says stop; ends when the last completion
// is in the database, which stop() waits for.
async function work(jobs, concurrent, local, delay, ready) {
  const pool = poolOf(10);
  await Promise.all(Array.from({ length: 4 }, () => pool.query("select 1")));
  const count = { done: 0 };
  let finished;
  const all = new Promise((resolve) => (finished = resolve));
  const none = () => {
    if (++count.done === jobs) finished();
  };
  await ready?.(count, finished);
  const begin = performance.now();
  const runner = await start({ none }, pool, concurrent, local, delay);
  await all;
  await runner.stop();
  const seconds = (performance.now() - begin) / 1000;
  await pool.end();
  return seconds;
}

async function child(jobs, concurrent, local, delay) {
  let timer;
  await work(jobs, concurrent, local, delay, async (count, finished) => {
    process.send("ready");
    await once(process, "message");
    process.once("message", finished);
    timer = setInterval(() => process.send(count.done), 5);
  });
  clearInterval(timer);
  process.send("stopped");
  process.disconnect();
}

async function drain(jobs, concurrent, local, delay, processes) {
  if (processes === 1) {
    console.log(jobs / (await work(jobs, concurrent, local, delay)));
    return;
  }
  const counts = new Array(processes).fill(0);
  const children = counts.map(() =>
    fork(process.argv[1], ["child", url, jobs, concurrent, local, delay].map(String)),
  );
  await Promise.all(children.map((one) => once(one, "message")));
  const begin = performance.now();
  const ends = children.map(
    (one, i) =>
      new Promise((resolve) => {
        one.on("message", (message) => {
          if (message === "stopped") return resolve();
          const before = counts.reduce((a, b) => a + b);
          counts[i] = message;
          const after = counts.reduce((a, b) => a + b);
          if (before < jobs && after >= jobs) children.forEach((each) => each.send("stop"));
        });
      }),
  );
  children.forEach((one) => one.send("go"));
  await Promise.all(ends);
  console.log(jobs / ((performance.now() - begin) / 1000));
}

const quantile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];

async function producer(samples) {
  const pool = poolOf(1);
  const utils = await utilsOf(pool);
  await utils.addJob("bell", {});
  for (let i = 0; i < samples + 20; i++) {
    await once(process, "message");
    await new Promise((r) => setTimeout(r, 5));
    await utils.addJob("bell", { at: performance.timeOrigin + performance.now() });
  }
  await utils.release();
  await pool.end();
  process.disconnect();
}

async function latency(samples, from) {
  const pool = poolOf(10);
  const took = [];
  let rung = () => {};
  const runner = await start(
    {
      bell: ({ at }) => {
        if (at) took.push(performance.timeOrigin + performance.now() - at);
        rung();
      },
    },
    pool,
    4,
    -1,
    -1,
  );
  const ring = () => new Promise((resolve) => (rung = resolve));
  if (from === "same") {
    const utils = await utilsOf(pool);
    for (let i = 0; i < samples + 20; i++) {
      await new Promise((r) => setTimeout(r, 5));
      const heard = ring();
      await utils.addJob("bell", { at: performance.timeOrigin + performance.now() });
      await heard;
    }
    await utils.release();
  } else {
    const heard = ring();
    const child = fork(process.argv[1], ["producer", url, String(samples)]);
    await heard;
    for (let i = 0; i < samples + 20; i++) {
      const next = ring();
      child.send("go");
      await next;
    }
  }
  await runner.stop();
  await pool.end();
  const sorted = took.slice(20).sort((a, b) => a - b);
  console.log(`${quantile(sorted, 0.5)} ${quantile(sorted, 0.99)}`);
}

async function idle(seconds) {
  const pool = poolOf(10);
  const runner = await start({ none: () => {} }, pool, 4, -1, -1);
  await new Promise((r) => setTimeout(r, 1000));
  console.log("ready");
  const before = process.cpuUsage();
  await new Promise((r) => setTimeout(r, seconds * 1000));
  const used = process.cpuUsage(before);
  console.log((used.user + used.system) / 1e4 / seconds);
  await runner.stop();
  await pool.end();
}

const numbers = rest.map(Number);
switch (verb) {
  case "migrate": await migrate(); break;
  case "enqueue": await enqueue(numbers[0], numbers[1], numbers[2] === 1); break;
  case "drain": await drain(...numbers); break;
  case "child": await child(...numbers); break;
  case "latency": await latency(numbers[0], rest[1]); break;
  case "producer": await producer(numbers[0]); break;
  case "idle": await idle(numbers[0]); break;
  default: throw new Error(`what is ${verb}?`);
}
