// live.js - the connection to `tidemark serve`: lets this browser in, follows the state, and goes on
// by itself after the process was away.
import { Trouble, forget, get, key, pair, watch } from './api.js'

/** @typedef {{ account: string, system: string, now: string, why: string, tidemark: string | null, tidemark_unix_ms?: number,
 *   gaps: number, left: number, left_is_known: boolean, stored: number, exact?: number, rate_per_minute?: number | null, unit: string, words?: string | null, bad: number, note: string | null,
 *   jobs_running: number, jobs_waiting: number, jobs_failed: number, quota_used_units?: number, quota_max_units?: number,
 *   time_left_ms: number | null, last_ok_unix_ms: number, last_failed_unix_ms: number, failing_since_unix_ms?: number | null, last_failure: string | null,
 *   next_try_unix_ms: number | null, halted_unix_ms: number | null, halt_reason: string | null,
 *   ruler: import('./charts.js').Ruler | null,
 *   pace: null | { rate_units_per_s: number, rate_max_units_per_s: number, in_flight: number, in_flight_max: number, workers: number,
 *     calls: number, calls_by_class: Record<string, number>, errors_by_code: Record<string, number>, retried: number, split: number } }} Account */
/** @typedef {{ condition: string, level: string, account: string | null, text: string, since_unix_ms: number, means: string, to_do: string, command: string }} Alert */
/** @typedef {{ name: string, provider: string, unit: string, subject: string }} System */
/** @typedef {{ engine: boolean, accounts: Account[], alerts: Alert[], systems: System[],
 *   jobs: { running: number, waiting: number, blocked: number, delayed: number, failed: number },
 *   lanes: null | Record<string, { running: number, waiting: number }> }} State */
/** @typedef {{ at: number, stored: number, left: number, used: number, max: number }} Sample */

/** 'asking' waits for the terminal; 'gone': nobody answers, what is shown is the last that was known.
 * @typedef {'starting' | 'asking' | 'refused' | 'live' | 'gone'} Phase */

const KEPT_MS = 600000
const HIDDEN_MS = 5000
const GONE = 'This browser was known before; its key no longer holds.'

export const live = {
  /** @type {Phase} */ phase: 'starting',
  /** @type {State | null} */ state: null,
  /** Counts up with each state. */ version: 0,
  code: '',
  /** Had a key that no longer holds. */ known: false,
  /** Why the last request to be let in ended, or why the key no longer holds. */ words: '',
  since: 0,
  /** @type {Map<string, Sample[]>} */ samples: new Map(),
  /** Alerts that were active while this page was open, and no longer are.
   * @type {(Alert & { cleared: number })[]} */ cleared: [],
}

/** @type {Set<() => void>} */
const listeners = new Set()

/** @param {() => void} listener */
export const follow = (listener) => listeners.add(listener)

/** @param {Phase} phase */
function enter(phase) {
  if (live.phase !== phase) live.since = Date.now()
  live.phase = phase
  for (const listener of listeners) listener()
}

/** The name of an account among those of all systems.
 * @param {{ system: string, account: string }} account */
export const named = (account) => `${account.system}/${account.account}`

/** @param {State} state @param {number} now */
function sample(state, now) {
  for (const account of state.accounts) {
    const list = live.samples.get(named(account)) ?? []
    const last = list[list.length - 1]
    if (last && now - last.at < 900) list.pop()
    list.push({ at: now, stored: account.stored, left: account.left, used: account.quota_used_units ?? 0, max: account.quota_max_units ?? 0 })
    while (list.length > 0 && now - list[0].at > KEPT_MS) list.shift()
    live.samples.set(named(account), list)
  }
}

/** @param {Alert} alert */
const alertKey = (alert) => alert.condition + '/' + (alert.account ?? '')

/** @param {State} state */
function take(state) {
  const now = Date.now()
  const active = new Set(state.alerts.map(alertKey))
  for (const alert of live.state?.alerts ?? []) if (!active.has(alertKey(alert))) live.cleared.unshift({ ...alert, cleared: now })
  live.cleared = live.cleared.filter((alert) => !active.has(alertKey(alert))).slice(0, 50)
  live.state = state
  live.version++
  sample(state, now)
  enter('live')
}

/** How many units a second were stored lately; null: not known yet.
 * @param {string} name */
export function speed(name) {
  const list = live.samples.get(name) ?? []
  const last = list[list.length - 1]
  const first = list.find((one) => last.at - one.at <= 20000)
  if (!first || last.at - first.at < 2000) return null
  return ((last.stored - first.stored) * 1000) / (last.at - first.at)
}

/** How long the rest takes, in milliseconds; null: not known.
 * @param {Account} account */
export function timeLeft(account) {
  if (account.now !== 'running' || account.left === 0 || !account.left_is_known) return null
  const list = live.samples.get(named(account)) ?? []
  const last = list[list.length - 1]
  const first = list.find((one) => last.at - one.at <= 20000)
  if (first && last.at - first.at >= 4000 && first.left > last.left) return (last.left * (last.at - first.at)) / (first.left - last.left)
  return account.time_left_ms
}

/** Values at equal distances over the last minutes, for a line.
 * @param {string} name @param {(now: Sample, before: Sample) => number} value @param {number} points @param {number} span_ms */
export function line(name, value, points, span_ms) {
  const list = live.samples.get(name) ?? []
  if (list.length < 2) return []
  const to = list[list.length - 1].at
  const from = Math.max(list[0].at, to - span_ms)
  const step = Math.max(1000, (to - from) / points)
  const values = []
  let before = list[0]
  let at = 0
  for (let edge = from + step; edge <= to + 1; edge += step) {
    while (at < list.length - 1 && list[at + 1].at <= edge) at++
    if (list[at] !== before) values.push(Math.max(0, value(list[at], before)))
    before = list[at]
  }
  return values
}

/** @param {number} ms */
const pause = (ms) => new Promise((resume) => setTimeout(resume, ms))

/** @type {null | (() => void)} */
let asked = null

/** Asks the terminal once more, after it had refused. */
export function askAgain() {
  asked?.()
}

async function letIn() {
  for (;;) {
    enter('asking')
    const ended = await pair((code) => {
      live.code = code
      live.words = live.known ? GONE : ''
      enter('asking')
    }).catch(async (error) => {
      // One browser a second may ask, and three may wait.
      if (!(error instanceof Trouble) || (error.status !== 429 && error.status !== 503)) throw error
      live.words = error.message + (error.help ? ' ' + error.help : '')
      enter('asking')
      await pause(1200)
      return /** @type {const} */ ('expired')
    })
    live.code = ''
    if (ended === 'in') {
      live.known = false
      live.words = ''
      return
    }
    if (ended === 'refused') {
      enter('refused')
      await new Promise((resume) => { asked = () => resume(undefined) })
      asked = null
    }
    while (document.hidden) await pause(500)
  }
}

/** What the stream carries, and who takes it.  There is one stream per page.
 * @type {Map<string, (data: any) => void>} */
const topics = new Map([['state', take]])
let reopen = () => {}

/** Follows a topic as well, until it is dropped.
 * @param {string} topic @param {(data: any) => void} taker */
export function subscribe(topic, taker) {
  const known = topics.has(topic)
  topics.set(topic, taker)
  if (!known) reopen()
}

/** @param {string} topic */
export function drop(topic) {
  if (topics.delete(topic)) reopen()
}

/** Until somebody looks. */
const seenAgain = () => new Promise((resume) => {
  if (document.hidden) document.addEventListener('visibilitychange', () => resume(undefined), { once: true })
  else resume(undefined)
})

/** Reads the stream; it is closed when nobody has looked for five seconds. */
async function followState() {
  const stop = new AbortController()
  reopen = () => stop.abort()
  let timer = 0
  const seen = () => {
    clearTimeout(timer)
    if (document.hidden) timer = window.setTimeout(() => stop.abort(), HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', seen)
  seen()
  try {
    await watch([...topics.keys()], (topic, data) => topics.get(topic)?.(data), stop.signal)
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    document.removeEventListener('visibilitychange', seen)
    clearTimeout(timer)
  }
  while (document.hidden) await seenAgain()
}

/** Never ends. */
export async function connect() {
  let failures = 0
  for (;;) {
    try {
      if (!key()) await letIn()
      take(await get('state'))
      failures = 0
      await followState()
    } catch (error) {
      const status = error instanceof Trouble ? error.status : 0
      if (status === 401) {
        live.known = key() !== null
        live.words = live.known ? GONE : ''
        forget()
        continue
      }
      if (!(error instanceof Trouble)) console.error(error) // a stream that broke, or a fault of the page
      enter('gone')
      await pause(Math.min(10000, 500 * 2 ** failures++) * (0.5 + Math.random() / 2))
    }
  }
}

/** The state, asked for now: after an action. */
export async function refresh() {
  take(await get('state'))
}
