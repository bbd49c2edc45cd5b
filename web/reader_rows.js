// reader_rows.js - the rows of a list by their place, however long it is.  Counts of days say where a
// place is in time; rows are asked for from there on, and those far from what is shown are forgotten.
import { Trouble } from './api.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {{ items: any[], next: string | null, more_online?: boolean }} Answer */
/** @typedef {{ day: string, count: number }} Day */

const KEPT = 4000
const NEAR = 1500
const PIECE = 400
const RETRY_MS = 1000
const DAY_MS = 86400000

/** @param {{ account: string, id: string }} row */
export const keyOf = (row) => row.account + '/' + row.id

/** A message names labels with their words, a list and a search do not.
 * @param {any[] | undefined} labels @returns {string[]} */
export const ids = (labels) => (labels ?? []).map((one) => (typeof one === 'string' ? one : one.id))

/** A message of any answer as a row.
 * @param {any} row @param {string} account @returns {Row} */
export function rowOf(row, account) {
  const labels = ids(row.labels)
  return { snippet: '', files: false, body: 'none', pending: false, ...row, account, labels, unread: labels.includes('UNREAD'), starred: labels.includes('STARRED') }
}

/** Newest first; an order that all places agree on.
 * @param {Row} a @param {Row} b */
const before = (a, b) => b.internal_unix_ms - a.internal_unix_ms || (keyOf(a) < keyOf(b) ? -1 : 1)

/** Reads one list of one account, page by page. */
export class Cursor {
  /** @param {string} account @param {(after: string) => Promise<Answer>} ask */
  constructor(account, ask) {
    this.account = account
    this.ask = ask
    /** @type {Row[]} */
    this.rows = []
    this.at = 0
    /** @type {string | null} */
    this.next = ''
    /** The server has more than is known here. */
    this.online = false
  }

  get head() {
    return this.rows[this.at]
  }

  async fill() {
    while (this.at === this.rows.length && this.next !== null) {
      const answer = await this.ask(this.next)
      this.rows = answer.items.map((row) => rowOf(row, this.account || row.account))
      this.at = 0
      this.next = answer.next
      this.online = answer.next === null && answer.more_online === true
    }
  }
}

/** Several lists as one. */
export class Merge {
  /** @param {Cursor[]} cursors @param {boolean} [unique] the same message may be in two of them */
  constructor(cursors, unique = false) {
    this.cursors = cursors
    /** @type {Set<string> | null} */
    this.seen = unique ? new Set() : null
  }

  get done() {
    return this.cursors.every((one) => !one.head && one.next === null)
  }

  /** Accounts that have more on their server. */
  get online() {
    return this.cursors.filter((one) => !one.head && one.online).map((one) => one.account)
  }

  /** @param {number} many @returns {Promise<Row[]>} */
  async take(many) {
    /** @type {Row[]} */
    const rows = []
    while (rows.length < many) {
      const dry = this.cursors.filter((one) => !one.head && one.next !== null)
      if (dry.length > 0) await Promise.all(dry.map((one) => one.fill()))
      const [best] = this.cursors.filter((one) => one.head).sort((a, b) => before(a.head, b.head))
      if (!best) break
      const row = best.rows[best.at++]
      if (this.seen?.has(keyOf(row))) continue
      this.seen?.add(keyOf(row))
      rows.push(row)
    }
    return rows
  }
}

/** What a list is made from.  `days`: null where nobody counts them (a search): then places are known from the beginning on.
 * @typedef {{ days: () => Promise<Day[] | null>, open: (before: number | null) => Merge }} Source */
/** Rows of successive places, and what reads on behind them.
 * @typedef {{ start: number, end: number, merge: Merge }} Run */

export class Rows {
  /** @param {Source} source @param {() => void} changed */
  constructor(source, changed) {
    this.source = source
    this.changed = changed
    this.total = 0
    /** Where each day begins, newest first.
     * @type {{ start: number, ms: number }[]} */
    this.days = []
    /** @type {Map<number, Row>} */
    this.rows = new Map()
    /** @type {Map<string, number>} */
    this.places = new Map()
    /** @type {Run[]} */
    this.runs = []
    this.opened = false
    /** Whether days are counted. */
    this.counted = false
    /** Whether `total` is the total, and not what is known so far. */
    this.exact = false
    this.loading = false
    /** @type {Promise<void>} */
    this.turn = Promise.resolve()
    /** The days no longer are what was counted. */
    this.stale = false
    this.retryAt = 0
    /** @type {Trouble | null} */
    this.trouble = null
    /** @type {[number, number]} */
    this.wanted = [0, 0]
    /** Places whose rows somebody waits for.
     * @type {Set<{ place: number, row: Row | undefined }>} */
    this.awaited = new Set()
  }

  /** Counts. */
  async open() {
    const days = await this.source.days()
    this.days = (days ?? []).map(({ day, count }) => {
      const one = { start: this.total, ms: Date.parse(day) + DAY_MS }
      this.total += count
      return one
    })
    this.exact = this.counted = days !== null
    this.opened = true
  }

  /** @param {number} place */
  at(place) {
    return this.rows.get(place)
  }

  /** The day that a place is in.
   * @param {number} place */
  dayOf(place) {
    let low = 0
    let high = this.days.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.days[middle].start <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The run that reaches a place with the fewest rows in between.
   * @param {number} place @returns {Run} */
  runTo(place) {
    const day = this.days[this.dayOf(place)]
    const start = day?.start ?? 0
    const [near] = this.runs.filter((run) => run.end <= place && run.end >= start).sort((a, b) => b.end - a.end)
    if (near) return near
    const run = { start, end: start, merge: this.source.open(day ? day.ms : null) }
    this.runs.push(run)
    return run
  }

  /** @param {Run} run @param {Row[]} rows */
  put(run, rows) {
    for (const row of rows) {
      const place = run.end++
      this.rows.set(place, row)
      this.places.set(keyOf(row), place)
      for (const one of this.awaited) if (one.place === place) one.row ??= row
      const day = this.days[this.dayOf(place)]
      if (day && (row.internal_unix_ms >= day.ms || row.internal_unix_ms < day.ms - DAY_MS)) this.stale = true
    }
    // What it has run into is known twice.
    this.runs = this.runs.filter((other) => other === run || other.start < run.start || other.end > run.end)
  }

  /** @param {number} from @param {number} to @returns {number} -1: none */
  missing(from, to) {
    if (this.runs.length === 0 && (!this.counted || this.total === 0)) return 0 // whether the server has more is known by asking
    for (let place = Math.max(0, from); place <= to && place < this.total; place++) if (!this.rows.has(place)) return place
    return -1
  }

  /** Loads what is missing between two places; one after another, because what reads on has one position.
   * @param {number} from @param {number} to */
  load(from, to) {
    const turn = this.turn.then(() => this.fill(from, to))
    this.turn = turn.catch(() => {})
    return turn
  }

  /** @param {number} from @param {number} to */
  async fill(from, to) {
    if (!this.opened) await this.open()
    for (let place = this.missing(from, to); place >= 0; place = this.missing(from, to)) {
      const run = this.runTo(place)
      const rows = await run.merge.take(Math.min(PIECE, Math.max(60, to + 20 - run.end)))
      this.put(run, rows)
      this.exact ||= run.merge.done
      if (run.merge.done) this.total = run.end
      else if (!this.counted) this.total = Math.max(this.total, run.end + 1)
      if (rows.length === 0) break
    }
    this.forget(from, to)
  }

  /** Loads what is shown, in the background; of several wishes the newest.
   * @param {number} from @param {number} to */
  async want(from, to) {
    this.wanted = [from, to]
    if (this.loading || Date.now() < this.retryAt || (this.opened && this.missing(from, to) < 0)) return
    this.loading = true
    try {
      for (let at = [-1, -1]; at[0] !== this.wanted[0] || at[1] !== this.wanted[1];) {
        at = [...this.wanted]
        await this.load(at[0], at[1])
        this.trouble = null
        this.changed()
      }
    } catch (error) {
      this.trouble = error instanceof Trouble ? error : new Trouble(-1, { detail: String(error) })
    }
    this.loading = false
    this.retryAt = this.trouble ? Date.now() + RETRY_MS : 0
    this.changed()
  }

  /** The row of a place once it has come; what is taken out before it meanwhile moves the place.
   * @param {number} place @returns {Promise<Row | undefined>} */
  async come(place) {
    const one = { place, row: this.rows.get(place) }
    this.awaited.add(one)
    try {
      for (let tries = 0; tries < 3 && !one.row; tries++) await this.load(one.place, one.place)
    } finally {
      this.awaited.delete(one)
    }
    return one.row
  }

  /** Only what is near stays.
   * @param {number} from @param {number} to */
  forget(from, to) {
    if (this.rows.size <= KEPT) return
    const near = (/** @type {number} */ place) => place > from - NEAR && place < to + NEAR
    if (this.counted) this.runs = this.runs.filter((run) => near(run.end))
    for (const [place, row] of this.rows) {
      if (near(place)) continue
      this.rows.delete(place)
      this.places.delete(keyOf(row))
    }
  }

  /** The place of a message, or of what is next to where it was; -1: it is not among the first `most` of its day.
   * @param {{ key: string, ms: number }} anchor */
  async locate(anchor, most = Infinity) {
    await this.load(0, -1)
    const day = this.days.findIndex((one) => anchor.ms >= one.ms - DAY_MS)
    if (day < 0 && this.days.length > 0) return Math.max(0, this.total - 1)
    const start = this.days[day]?.start ?? 0
    for (let place = start; place - start < most; place++) {
      await this.load(place, place)
      const row = this.rows.get(place)
      if (!row || keyOf(row) === anchor.key || row.internal_unix_ms < anchor.ms) return Math.max(0, Math.min(place, this.total - 1))
    }
    return -1
  }

  /** Accounts whose servers have more than what is known, once the end is in sight. */
  get online() {
    const last = this.runs.find((run) => run.end >= this.total && run.merge.done)
    return last ? last.merge.online : []
  }

  /** Another state of a message that is here.
   * @param {Row} row */
  replace(row) {
    const place = this.places.get(keyOf(row))
    if (place !== undefined) this.rows.set(place, row)
    return place !== undefined
  }

  /** Takes messages out; those behind them move up.
   * @param {string[]} keys */
  remove(keys) {
    const gone = keys.map((key) => this.places.get(key) ?? -1).filter((place) => place >= 0).sort((a, b) => a - b)
    if (gone.length === 0) return
    const moved = (/** @type {number} */ place) => place - gone.filter((one) => one < place).length
    const out = new Set(gone)
    const rows = [...this.rows].filter(([place]) => !out.has(place))
    this.rows = new Map(rows.map(([place, row]) => [moved(place), row]))
    this.places = new Map([...this.rows].map(([place, row]) => [keyOf(row), place]))
    for (const one of this.awaited) if (!one.row) one.place = moved(one.place)
    for (const run of this.runs) Object.assign(run, { start: moved(run.start), end: moved(run.end) })
    this.days = this.days.map((day) => ({ ...day, start: moved(day.start) }))
    this.total -= gone.length
  }
}
