// graphile-worker as a contestant of script/bench queue.
//
//   graphile.mjs migrate URL
//   graphile.mjs enqueue URL JOBS SLICE KEYS(0|1)         jobs/s
//   graphile.mjs drain   URL JOBS CONCURRENT LOCAL DELAY  jobs/s
//   graphile.mjs latency URL SAMPLES same|other           ms: p50 p99
//   graphile.mjs idle    URL SECONDS                      CPU ms of this process
//   graphile.mjs wait    URL JOBS CONCURRENT LOCAL DELAY  as drain, begins with a line on stdin
//
// Settings are those its page on performance names: a local queue, completions in
// batches, prepared statements, no log line for each job (NO_LOG_SUCCESS=1).
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { once } from "node:events";
import { fork } from "node:child_process";
import { performance } from "node:perf_hooks";

// Peers live in a cache directory, not beside this file.
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

// Until the last completion is in the database: stop() waits for it.
async function drain(jobs, concurrent, local, delay, wait) {
  const pool = poolOf(10);
  await Promise.all(Array.from({ length: 4 }, () => pool.query("select 1")));
  if (wait) {
    console.log("ready");
    await once(process.stdin, "data");
    process.stdin.destroy();
  }
  let done = 0;
  let finished;
  const all = new Promise((resolve) => (finished = resolve));
  const begin = performance.now();
  const runner = await start(
    {
      none: () => {
        if (++done === jobs) finished();
      },
    },
    pool,
    concurrent,
    local,
    delay,
  );
  if (wait) {
    // Several processes share the jobs: over when none is left for anybody.
    const left = () =>
      pool.query("select 1 from graphile_worker._private_jobs limit 1").then((r) => r.rowCount);
    while (done < jobs && (await left()) > 0) await new Promise((r) => setTimeout(r, 20));
  } else await all;
  await runner.stop();
  const seconds = (performance.now() - begin) / 1000;
  console.log(wait ? done : jobs / seconds);
  await pool.end();
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
  console.log((used.user + used.system) / 1000);
  await runner.stop();
  await pool.end();
}

const numbers = rest.map(Number);
switch (verb) {
  case "migrate": await migrate(); break;
  case "enqueue": await enqueue(numbers[0], numbers[1], numbers[2] === 1); break;
  case "drain": await drain(...numbers, false); break;
  case "wait": await drain(...numbers, true); break;
  case "latency": await latency(numbers[0], rest[1]); break;
  case "producer": await producer(numbers[0]); break;
  case "idle": await idle(numbers[0]); break;
  default: throw new Error(`what is ${verb}?`);
}
