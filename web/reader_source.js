// reader_source.js - the list that is shown: where its rows come from, when it is read anew, and searching.
import { Trouble, get, path, post } from './api.js'
import { page } from './page.js'
import { lookAhead } from './reader_ahead.js'
import { accounts, boxOf, boxesOf } from './reader_data.js'
import { List } from './reader_list.js'
import { seek } from './reader_mark.js'
import * as notes from './reader_notify.js'
import { Cursor, Merge, Rows, keyOf } from './reader_rows.js'
import { NAMES, addressOf, labelName, redraw, shown, talk, where } from './reader_where.js'
import { number } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_data.js').Box} Box */

const RENEW_MS = 2000
const ONLINE_MS = 700
const ASK_AGAIN_MS = 10000

export const list = new List({
  open: () => {}, ahead: lookAhead, star: () => {}, changed: () => redraw(),
  words: (row) => [where.who === 'all' && accounts().length > 1 ? row.account.split('@')[0] : '', ...row.labels.filter((id) => id !== where.folder && !NAMES[id] && id !== 'UNREAD' && !id.startsWith('CATEGORY_')).map((id) => labelName(row.account, id)), row.pinned ? 'kept offline' : ''].filter(Boolean).join(' · '),
})

/** @type {Map<string, Row[]>} */
let found = new Map()
let searching = false

/** A list whose days nobody counts is known from its beginning on.
 * @param {unknown} error */
function uncounted(error) {
  if (error instanceof Trouble && error.status === 404) return null
  throw error
}

/** @returns {import('./reader_rows.js').Source} */
function sourceOf() {
  const { who, folder, q } = where
  if (q) {
    const here = () => boxesOf(who).map((box) => new Cursor(box.account, (after) => get(`mail/${path(box.account)}/search`, { q, limit: 50, after })))
    return { days: async () => null, open: () => new Merge([...here(), ...[...found].map(([account, items]) => new Cursor(account, async () => ({ items, next: null })))], true) }
  }
  const of = boxesOf(who)
  return {
    days: async () => {
      const lists = await Promise.all(of.map((box) => get(`mail/${path(box.account)}/lists/${path(folder)}/days`).catch(uncounted)))
      if (lists.includes(null)) return null
      /** @type {Map<string, number>} */
      const counts = new Map()
      for (const { day, count } of lists.flatMap((one) => one.days)) counts.set(day, (counts.get(day) ?? 0) + count)
      return [...counts].map(([day, count]) => ({ day, count })).sort((a, b) => (a.day < b.day ? 1 : -1))
    },
    open: (before) => new Merge(of.map((box) => new Cursor(box.account, (after) => get(`mail/${path(box.account)}/lists/${path(folder)}`, { limit: 100, after, before: after ? null : before })))),
  }
}

/** What the next letter of a search finds; what is shown stays until it is there.
 * @type {Rows | null} */
let coming = null

function freshRows() {
  /** @type {Rows} */
  const rows = new Rows(sourceOf(), () => changedRows(rows))
  return rows
}

/** @param {Rows} rows */
function changedRows(rows) {
  if (rows === coming && !rows.loading) {
    coming = null
    list.take(rows)
  }
  list.find()
  if (list.moves) list.draw() // the ground stays under who moves it
  else list.settle()
  if (list.rows?.stale) renewSoon()
  if (!(coming ?? list.rows)?.loading) searchWish()
  if (shown) redraw()
}

let renewing = false
let renewedAt = 0
let renewTimer = 0

/** The list as it is now, with what is read in its place. */
async function renew() {
  const begin_where = listKey()
  renewing = true
  renewedAt = Date.now()
  const rows = freshRows()
  try {
    const spot = list.anchor()
    if (spot === undefined) {
      renewSoon()
      return
    }
    const mark = list.place >= 0 && list.key ? { key: list.key, ms: list.ms } : null
    const marked = mark ? await rows.locate(mark) : list.place
    const place = spot ? await rows.locate(spot) : 0
    await rows.load(place - 6, place + Math.ceil(list.height / list.row_px) + 12)
    if (begin_where !== listKey()) return
    const moved = list.key !== (mark?.key ?? '') && !rows.places.has(list.key) && list.place >= 0
    if (coming || list.moves || moved || list.anchor()?.key !== spot?.key) renewSoon()
    else {
      const newest = list.rows?.at(0)
      if (list.key === mark?.key) list.place = marked
      list.take(rows, place, spot?.offset_px ?? 0)
      if (newest) tellNew(rows, newest.internal_unix_ms)
    }
  } catch (error) {
    if (!(error instanceof Trouble)) throw error
    renewSoon() // what is shown stays until it works
  } finally {
    renewing = false
  }
  redraw()
}

/** A list may have new mail before the news tells of it.
 * @param {Rows} rows @param {number} after_ms */
function tellNew(rows, after_ms) {
  for (let place = 0, row = rows.at(0); row && row.internal_unix_ms > after_ms; row = rows.at(++place))
    notes.notify(boxOf(row.account), { version: '', reset: false, items: [row], gone: [] }, () => false, openNew)
}

/** @param {string} account @param {string} id */
export const openNew = (account, id) => page.go(`/reader/${encodeURIComponent(account)}/INBOX?m=${encodeURIComponent(account + '/' + id)}`)

/** As soon as it can be: what is shown was taken back. */
export function renewNow() {
  renewedAt = 0
  renewSoon()
}

export function renewSoon() {
  if (renewTimer) return
  renewTimer = window.setTimeout(() => {
    renewTimer = 0
    if (renewing || list.moves) renewSoon()
    else if (shown) void renew()
  }, Math.max(list.moves ? 200 : 0, renewedAt + RENEW_MS - Date.now()))
}

export const listKey = () => [...boxesOf(where.who).map((box) => box.account), where.folder, where.q].join(' ')
export let listed = ''
let searched = false

/** Another list than before. */
export function relist() {
  if (listed === listKey()) return
  listed = listKey()
  const letter = where.q !== '' && searched
  searched = where.q !== ''
  wish = null
  found = new Map()
  list.selected.clear()
  list.place = 0
  list.note(undefined)
  coming = letter ? freshRows() : null
  if (coming) void coming.want(0, Math.ceil(list.height / list.row_px) + 12)
  else list.take(freshRows())
  if (talk && keyOf(talk) === where.m) {
    list.expect(where.m)
    void seekOpened()
  }
  list.draw()
  if (where.q) searchOnline()
}

/** The same list, from its beginning. */
export function readAnew() {
  listed = ''
  relist()
}

/** What was asked for last, for each account.
 * @type {Map<string, { key: string, ms: number }>} */
const asked = new Map()

/** At the end of what is known: the server has more.  What brought nothing is asked for again after a while. */
export function readOn() {
  const { rows } = list
  if (!rows || where.q || rows.loading || (list.top + list.height < list.whole - 20 * list.row_px)) return
  for (const account of rows.online) {
    const box = boxOf(account)
    const key = `${where.folder} ${rows.total}`
    const last = asked.get(account)
    if (box.status?.offline_since || (last?.key === key && Date.now() - last.ms < ASK_AGAIN_MS)) continue
    asked.set(account, { key, ms: Date.now() })
    post(`mail/${path(account)}/refresh`, { folder: where.folder, more: 1 }).catch(() => asked.delete(account))
  }
}

// ---- search

let onlineTimer = 0
/** What stands in the field, if it is not what the list shows.
 * @type {string | null} */
let wish = null

/** Each letter is searched for at once, but for those that come while an answer is awaited: of these the last.
 * @param {string} text */
export function typed(text) {
  wish = text.trim()
  if (!where.q || !(coming ?? list.rows)?.loading) searchWish()
}

function searchWish() {
  const q = wish
  wish = null
  if (q !== null && q !== where.q && shown) page.turn(addressOf({ q, m: '', d: '' }))
}

/** What is here is shown at once; what only the server has joins in. */
function searchOnline() {
  const { q, who } = where
  clearTimeout(onlineTimer)
  searching = false
  if (q.length < 3) return
  onlineTimer = window.setTimeout(() => {
    for (const box of boxesOf(who)) if (!box.status?.offline_since) void searchAt(box, q)
  }, ONLINE_MS)
}

/** @param {Box} box @param {string} q */
async function searchAt(box, q) {
  const still = () => where.q === q && shown
  searching = true
  try {
    await post(`mail/${path(box.account)}/refresh`, { query: q })
    for (let tries = 0; tries < 40 && still(); tries++) {
      const answer = await get(`mail/${path(box.account)}/found`, { q })
      if (answer.items.length !== (found.get(box.account)?.length ?? 0) && still()) {
        found.set(box.account, answer.items)
        renewSoon()
      }
      if (answer.done) break
      await new Promise((resume) => setTimeout(resume, 500))
    }
  } catch {
    // What is stored here is shown all the same; the line below says that there is no network.
  }
  if (still()) searching = false
  redraw()
}

/** Those that only the server had. */
export function fromServer() {
  const many = [...found.values()].flat().filter((row) => row.body === 'none').length
  return many > 0 ? `${number(many)} more from Gmail` : searching ? 'asking Gmail…' : ''
}

/** The row of the opened message, wherever in the list it is: a link may lead far down. */
export async function seekOpened() {
  const of = talk
  const message = of?.full.get(of.id)
  if (of && message) await seek(list, { key: keyOf(of), ms: message.internal_unix_ms }, () => talk === of)
}
