// view_reader.js - mail to read, find, answer and tidy: folders, a list, a conversation, and a line that
// says what runs and why.  The panes stay the same elements while somebody reads.
import { standing } from './accounts.js'
import { Trouble, get, path, post } from './api.js'
import { afterPaint, h, render, renderFrom } from './dom.js'
import { live } from './live.js'
import { button, command, empty, failed, page } from './page.js'
import { pick } from './pick.js'
import { act, allowed, canUndo, changes, tellRefused, undo } from './reader_act.js'
import { forgetAhead, forgetAllAhead, lookAhead } from './reader_ahead.js'
import { accounts, begin, belongs, boxOf, boxesOf, catchUp, end, followNews, loadFolders, offline } from './reader_data.js'
import { List } from './reader_list.js'
import { onRow, seek } from './reader_mark.js'
import * as notes from './reader_notify.js'
import { bare, forward, mailto, reply } from './reader_quote.js'
import { Cursor, Merge, Rows, keyOf } from './reader_rows.js'
import { Talk } from './reader_talk.js'
import { running } from './reader_words.js'
import { begun, blank, onKept, reopen, unsaved, writeForm } from './reader_write.js'
import { announce, confirmed, tell, tellTrouble } from './say.js'
import { SAID, count, number } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_data.js').Box} Box */
/** @typedef {import('./reader_data.js').Folder} Folder */
/** @typedef {import('./reader_act.js').Verb} Verb */
/** @typedef {import('./reader_write.js').Writing} Writing */
/** Where the address leads: an account or "all", a folder, a search, an opened message or draft ("ACCOUNT/ID").
 * @typedef {{ who: string, folder: string, q: string, m: string, d: string }} Where */

const ORDER = ['INBOX', 'STARRED', 'IMPORTANT', 'SENT', 'DRAFT', 'ALL', 'SPAM', 'TRASH']
const NAMES = /** @type {Record<string, string>} */ ({ INBOX: 'Inbox', STARRED: 'Starred', IMPORTANT: 'Important', SENT: 'Sent', DRAFT: 'Drafts', ALL: 'All mail', SPAM: 'Spam', TRASH: 'Trash' })
const RENEW_MS = 2000
const ONLINE_MS = 700
const ASK_AGAIN_MS = 10000
const ALL_MAX = 1000

/** @type {Where} */
let where = { who: '', folder: '', q: '', m: '', d: '' }
let shown = false
const opened_ms = Date.now()

// ---- the panes

const folders = h('nav', { class: 'folders', 'aria-label': 'Folders' })
const tools = h('div', { class: 'reader-tools' })
const note = h('div', { class: 'reader-note' })
const side = h('section', { class: 'talk', 'aria-label': 'Conversation', tabindex: -1 })
const now = h('p', { class: 'now' })
const list = new List({
  open: (row) => go({ m: keyOf(row), d: '' }), ahead: lookAhead, star: (row) => void doIt(row.starred ? 'unstar' : 'star', [row]), changed: () => redraw(),
  words: (row) => [where.who === 'all' && accounts().length > 1 ? row.account.split('@')[0] : '', ...row.labels.filter((id) => id !== where.folder && !NAMES[id] && id !== 'UNREAD' && !id.startsWith('CATEGORY_')).map((id) => labelName(row.account, id)), row.pinned ? 'kept offline' : ''].filter(Boolean).join(' · '),
})
const root = h('div', { key: 'reader', class: 'reader' }, folders, h('section', { class: 'box', 'aria-label': 'List of messages' }, tools, note, list.element), side, now)

/** @type {Talk | null} */
let talk = null
/** @type {Writing | null} */
let writing = null

// ---- where

/** @param {Partial<Where>} to */
function addressOf(to) {
  const { who, folder, q, m, d } = { ...where, ...to }
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ q, m, d })) if (value) params.set(name, value)
  const text = params.toString()
  return `/reader/${encodeURIComponent(who)}/${encodeURIComponent(folder)}${text ? '?' + text : ''}`
}

let due = false

/** Once for all that changes at once: opening a message changes the mark, the list, the conversation and counts. */
function redraw() {
  if (due) return
  due = true
  queueMicrotask(() => {
    if (!due) return // it was drawn meanwhile
    due = false
    page.redraw()
  })
}

/** @param {Partial<Where>} to */
const go = (to) => page.go(addressOf(to))

/** @param {string} key "ada@example.com/18f2" @returns {[string, string]} */
const parted = (key) => [key.slice(0, key.lastIndexOf('/')), key.slice(key.lastIndexOf('/') + 1)]

/** @param {string} account @param {string} id */
const labelName = (account, id) => NAMES[id] ?? boxOf(account).folder(id)?.name ?? id

const folderName = () => (where.q ? 'Search' : where.who === 'all' ? labelName('', where.folder) : labelName(where.who, where.folder))

/** @param {Box[]} of @param {string} folder @param {'unread' | 'total'} what */
const sum = (of, folder, what) => of.reduce((all, box) => all + (box.folder(folder)?.[what] ?? 0), 0)

// ---- the list

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
const openNew = (account, id) => page.go(`/reader/${encodeURIComponent(account)}/INBOX?m=${encodeURIComponent(account + '/' + id)}`)

function renewSoon() {
  if (renewTimer) return
  renewTimer = window.setTimeout(() => {
    renewTimer = 0
    if (renewing || list.moves) renewSoon()
    else if (shown) void renew()
  }, Math.max(list.moves ? 200 : 0, renewedAt + RENEW_MS - Date.now()))
}

const listKey = () => [...boxesOf(where.who).map((box) => box.account), where.folder, where.q].join(' ')
let listed = ''
let searched = false

/** Another list than before. */
function relist() {
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

/** What was asked for last, for each account.
 * @type {Map<string, { key: string, ms: number }>} */
const asked = new Map()

/** At the end of what is known: the server has more.  What brought nothing is asked for again after a while. */
function readOn() {
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
function typed(text) {
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
function fromServer() {
  const many = [...found.values()].flat().filter((row) => row.body === 'none').length
  return many > 0 ? `${number(many)} more from Gmail` : searching ? 'asking Gmail…' : ''
}

// ---- actions

/** Those that no longer belong here leave the list, the others change in their place.
 * @param {Row[]} rows */
function showRows(rows) {
  forgetAhead(rows)
  notes.know(rows)
  const stays = (/** @type {Row} */ row) => !row.labels.includes('GONE') && (where.q !== '' || belongs(row.labels, where.folder))
  for (const row of rows) {
    list.selected.delete(keyOf(row))
    talk?.replace(row)
    if (stays(row)) list.rows?.replace(row)
  }
  list.rows?.remove(rows.filter((row) => !stays(row)).map(keyOf))
}

/** @param {Verb} verb @param {Row[]} rows @param {string} [label] */
async function doIt(verb, rows, label) {
  if (rows.length === 0) return
  const leaves = rows.some((row) => row.account === talk?.account && row.id === talk?.id) && ['archive', 'trash', 'spam', 'move', 'delete', 'untrash', 'unspam'].includes(verb)
  const above = rows.filter((row) => (list.rows?.places.get(keyOf(row)) ?? Infinity) < list.place).length
  const place = list.place - above
  const sent = act(verb, rows, { label, show: showRows, back: () => { renewedAt = 0; renewSoon(); void talk?.load() } })
  list.find()
  list.settle()
  if (leaves && place < 0) go({ m: '' }) // it was not in this list
  else if (leaves) {
    // What comes after it is read next.
    list.mark(Math.min(place, (list.rows?.total ?? 1) - 1))
    const next = list.marked()
    go({ m: next ? keyOf(next) : '' })
  }
  redraw()
  await sent
}

/** Gmail keeps apart what of a conversation is in the trash or in spam.
 * @param {Row | undefined} row */
const apart = (row) => ['TRASH', 'SPAM'].find((one) => row?.labels.includes(one))

/** Of the opened conversation; until it is loaded, what the list has of the opened message.
 * @returns {Row[]} */
function opened() {
  const rows = talk?.rows() ?? []
  const row = list.rows?.at(list.rows.places.get(where.m) ?? -1)
  return rows.some((one) => one.id === talk?.id) || !row ? rows : [row]
}

/** Of an opened conversation all that is where the opened message is and to which it does anything, else what is selected or marked.
 * @param {Verb} verb */
function chosen(verb) {
  const rows = list.selected.size === 0 && talk && !list.meant ? opened() : null
  const here = apart(rows?.find((row) => row.id === talk?.id))
  return (rows?.filter((row) => apart(row) === here && changes(row, verb)) ?? list.chosen()).filter((row) => allowed(row, verb))
}

/** What a search finds is not in the folder that was open before.
 * @param {string} folder */
const inFolder = (folder) => where.folder === folder && !where.q

/** What is selected, the opened conversation, or the marked row: that may have to come first.
 * @param {() => void} run */
const onChosen = (run) => (talk || list.selected.size > 0 ? run() : onMarked(run))

/** @param {() => void} run */
function onMarked(run) {
  const key = listed
  onRow(list, () => shown && listed === key, run)
}

/** @param {Verb} verb */
const run = (verb) => onChosen(() => void doIt(verb, chosen(verb)))

const trash = () => onChosen(() => void trashChosen())

async function trashChosen() {
  if (!inFolder('TRASH')) return doIt('trash', chosen('trash'))
  const rows = chosen('delete')
  if (rows.length > 0 && await confirmed(`Delete ${count(rows.length, 'message')} for ever?`, 'Delete')) await doIt('delete', rows)
}

/** What is kept already is kept no longer. */
const keep = () => onChosen(() => {
  const rows = chosen('pin')
  if (rows.some((row) => !row.pinned)) void doIt('pin', rows.filter((row) => !row.pinned))
  else void doIt('unpin', chosen('unpin'))
})

/** Whether all that is meant is kept offline. */
const isKept = () => (list.selected.size === 0 && talk ? chosen('pin').length === 0 && chosen('unpin').length > 0 : list.chosen().length > 0 && list.chosen().every((row) => row.pinned))

const star = () => onChosen(() => {
  const rows = list.selected.size > 0 || list.meant || !talk ? list.chosen() : opened().filter((row) => row.id === talk?.id)
  void doIt(rows.every((row) => row.starred) ? 'unstar' : 'star', rows)
})

/** @param {'label' | 'move'} verb */
const choose = (verb) => onChosen(() => chooseLabel(verb))

/** @param {'label' | 'move'} verb */
function chooseLabel(verb) {
  const rows = chosen(verb)
  if (rows.length === 0) return
  const of = new Set(rows.map((row) => row.account))
  if (of.size > 1) {
    tell('These are of several accounts; labels belong to one.', { bad: true })
    return
  }
  const user = boxOf(rows[0].account).folders.filter((one) => one.type === 'user')
  const has = (/** @type {Folder} */ one) => rows.every((row) => row.labels.includes(one.id))
  pick(verb === 'label' ? 'Label' : 'Move to', 'Label', 'A label', user.map((one) => /** @type {[string, () => void]} */ (
    [(verb === 'label' && has(one) ? '✓ ' : '') + one.name, () => void doIt(verb === 'label' && has(one) ? 'unlabel' : verb, rows, one.id)])))
}

/** All of this list, as far as one action reaches. */
async function selectAll() {
  const { rows } = list
  if (!rows) return
  if (list.selected.size > 0) {
    list.none()
  } else {
    await rows.load(0, ALL_MAX - 1).catch((error) => tellTrouble(error, 'Select'))
    for (let place = 0; place < Math.min(rows.total, ALL_MAX); place++) {
      const row = rows.at(place)
      if (row) list.selected.set(keyOf(row), row)
    }
    if (rows.total > ALL_MAX) tell(`The first ${number(ALL_MAX)} of ${number(rows.total)} are selected.`)
    list.draw()
  }
  redraw()
}

async function refresh() {
  for (const box of boxesOf(where.who)) {
    if (!where.q) await post(`mail/${path(box.account)}/refresh`, { folder: where.folder }).catch((error) => tellTrouble(error, 'Refresh'))
    void catchUp(box)
  }
  announce('Looking for news.')
}

// ---- reading and writing

/** Where the next message is that will be read. */
let direction = 1

/** @param {number} step */
function turn(step) {
  direction = Math.sign(step)
  list.mark(list.place + step)
  if (talk) onMarked(() => {
    const row = list.marked()
    if (talk && row && keyOf(row) === list.key) page.turn(addressOf({ m: keyOf(row), d: '' }))
  })
}

/** @param {'reply' | 'all' | 'forward'} how @param {any} [message] */
async function answer(how, message = talk?.opened) {
  const of = talk
  if (!message || !of) return
  if (message.body === 'none') announce(SAID.fetching)
  const whole = await of.whole(message)
  if (of !== talk || !shown) return // somebody went on
  const made = begun(of.account, how === 'forward' ? forward(whole) : reply(whole, accounts(), how === 'all'))
  if (how === 'forward') void made.bring(whole)
  go({ d: keyOf(made) })
}

/** @param {string} [url] */
function write(url) {
  const account = where.who === 'all' ? talk?.account ?? accounts()[0] : where.who
  go({ d: keyOf(begun(account, url ? mailto(url) : blank())), m: where.m })
}

/** Whether what has the focus goes away with the pane. */
const inside = () => side.contains(document.activeElement) || document.activeElement === document.body

/** The row of the opened message, wherever in the list it is: a link may lead far down. */
async function seekOpened() {
  const of = talk
  const message = of?.full.get(of.id)
  if (of && message) await seek(list, { key: keyOf(of), ms: message.internal_unix_ms }, () => talk === of)
}

/** Opens what the address names. */
function openSide() {
  const [account, id] = parted(where.m)
  if (!where.m) {
    if (talk && !where.d && inside()) setTimeout(() => list.element.focus())
    talk = null
  } else if (!talk || talk.account !== account || talk.id !== id) {
    const row = list.rows?.at(list.rows.places.get(where.m) ?? -1)
    talk = new Talk(account, id, row, {
      offline: () => offline([boxOf(account)]) !== null, shown: () => shown && talk?.account === account && talk.id === id, changed: () => redraw(), write, answer, label: (one) => labelName(account, one), buttons: talkButtons,
      read: (rows) => void act('read', rows, { silent: true, show: showRows, back: () => {} }),
    })
    list.expect(where.m)
    if (list.place >= 0) list.mark(list.place)
    const of = talk
    void of.load().then(async () => {
      if (list.place < 0) await seekOpened()
      afterPaint(() => { if (talk === of && list.place >= 0 && list.key === keyOf(of)) lookAhead(list.rows?.at(list.place + direction)) })
    })
    focusSoon('.talk-subject')
  }
  openDraft()
}

function openDraft() {
  const [account, id] = parted(where.d)
  if (!where.d) {
    void writing?.close().then(loadDrafts)
    if (writing && inside()) {
      if (talk) focusSoon('.talk-subject')
      else setTimeout(() => list.element.focus())
    }
    writing = null
  } else if (!writing || writing.account !== account || writing.id !== id) {
    writing = null
    const key = where.d
    reopen(account, id).then((one) => {
      if (where.d !== key) return
      writing = one
      redraw()
      focusSoon(one.letter.to ? '#write-text' : '#write-to')
    }, (error) => {
      tellTrouble(error, 'Draft')
      go({ d: '' })
    })
  }
}

/** The focus goes to what was opened, once it is there; not before the frame has moved it to the heading of another address.
 * @param {string} selector */
function focusSoon(selector, tries = 40) {
  setTimeout(() => {
    const at = side.querySelector(selector)
    if (at instanceof HTMLElement) {
      at.focus({ preventScroll: true })
      if (at instanceof HTMLTextAreaElement) at.setSelectionRange(0, 0)
    } else if (tries > 0 && shown) focusSoon(selector, tries - 1)
  }, tries === 40 ? 0 : 50)
}

function back() {
  if (where.d) go({ d: '' })
  else if (where.m) go({ m: '' })
  else if (where.q) go({ q: '' })
  else page.go('/')
}

// ---- drawing

/** @param {Box[]} of @param {string} who @param {Folder} one */
function folderLine(of, who, one) {
  const many = one.id === 'DRAFT' ? sum(of, one.id, 'total') + written.filter((draft) => of.some((box) => box.account === draft.account)).length : sum(of, one.id, 'unread')
  const name = NAMES[one.id] ?? one.name
  const here = where.who === who && where.folder === one.id && !where.q
  return h('li', { key: who + one.id }, h('a', { href: '#' + `/reader/${encodeURIComponent(who)}/${encodeURIComponent(one.id)}`, 'aria-current': here ? 'page' : null, class: many > 0 ? 'has' : null },
    h('span', {}, name), many > 0 ? h('b', {}, number(many), h('span', { class: 'unseen' }, one.id === 'DRAFT' ? ' drafts' : ' unread')) : null))
}

/** @param {Box} box */
function sorted(box) {
  const rank = (/** @type {Folder} */ one) => (ORDER.includes(one.id) ? ORDER.indexOf(one.id) : one.type === 'user' ? 50 : 99)
  return box.folders.filter((one) => one.type === 'user' || ORDER.includes(one.id)).sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name))
}

function drawFolders() {
  const of = accounts().map(boxOf)
  const inbox = { id: 'INBOX', name: 'Inbox', type: 'system', total: 0, unread: 0, known_unix_ms: 0 }
  const state = JSON.stringify([where.who, where.folder, where.q, notes.wanted(), written.map((draft) => draft.account), ...of.map((box) => [box.account, box.trouble?.message, box.folders])])
  renderFrom(folders, state, () => [
    button('Compose', () => write(), { key: 'c' }),
    of.length > 1 ? h('h2', { key: 'all' }, 'All accounts') : null, of.length > 1 ? h('ul', { key: 'all list' }, folderLine(of, 'all', inbox)) : null,
    ...of.flatMap((box) => [of.length > 1 ? h('h2', { key: box.account }, box.account) : null,
      box.trouble && box.trouble.status !== 0 && box.folders.length === 0 ? h('p', { key: box.account + ' trouble', class: 'bad' }, box.trouble.message) : null, h('ul', { key: box.account + ' list' }, ...sorted(box).map((one) => folderLine([box], box.account, one)))]),
    h('label', { class: 'check', key: 'notify' }, h('input', { type: 'checkbox', checked: notes.wanted(), on: { change: (event) => void notes.want(event.target.checked).then((on) => { event.target.checked = on }) } }), 'Notify me')])
}

/** @returns {Child[]} */
function actionButtons() {
  const inTrash = inFolder('TRASH')
  const inSpam = inFolder('SPAM')
  return [
    inTrash ? button('Put back', () => run('untrash'), { class: 'quiet' }) : button('Archive', () => run('archive'), { key: 'e', class: 'quiet' }),
    button(inTrash ? 'Delete for ever' : 'Trash', trash, { key: '#', class: 'quiet' }),
    button(inSpam ? 'No spam' : 'Spam', () => run(inSpam ? 'unspam' : 'spam'), { key: '!', class: 'quiet' }),
    button('Star', star, { key: 's', class: 'quiet' }), button('Label', () => choose('label'), { key: 'l', class: 'quiet' }), button('Move', () => choose('move'), { key: 'v', class: 'quiet' }),
    button('Unread', () => run('unread'), { key: 'U', class: 'quiet' }),
    button(isKept() ? 'Not offline' : 'Keep offline', keep, { key: 'o', class: 'quiet' }),
  ]
}

/** What those depend on. */
const actionState = () => [inFolder('TRASH'), inFolder('SPAM'), isKept()].join()

const talkTools = h('div', { class: 'buttons talk-tools', key: 'tools' })

function talkButtons() {
  renderFrom(talkTools, actionState(), () => [button('Back', back, { key: 'u', class: 'quiet' }), ...actionButtons(),
    button('Newer', () => turn(-1), { key: '[', class: 'quiet' }), button('Older', () => turn(1), { key: ']', class: 'quiet' }), button('Print', () => window.print(), { class: 'quiet' })])
  return talkTools
}

const listTools = h('div', { class: 'buttons', key: 'buttons' })

function listButtons() {
  const many = list.selected.size
  const any = (list.rows?.total ?? 0) > 0
  const own = any && (many > 0 || !talk)
  const dated = list.rows?.counted && any
  renderFrom(listTools, [own && actionState(), many > 0, any, dated, canUndo(), document.activeElement?.matches('input[type=date]')].join(), () => [
    own ? h('span', { class: 'buttons' }, ...actionButtons(), many > 0 ? button('Read', () => run('read'), { key: 'I', class: 'quiet' }) : null) : null,
    any ? button(many > 0 ? 'Select none' : 'Select all', () => void selectAll(), { key: '* a', class: 'plain' }) : null,
    button('Refresh', () => void refresh(), { key: '.', class: 'plain' }), canUndo() ? button('Undo', () => void undo(), { key: 'z', class: 'plain' }) : null,
    dated ? h('label', { class: 'field' }, h('span', {}, 'Go to'), h('input', { type: 'date', 'aria-label': 'Go to a day', on: { change: (event) => void jump(event.target.value) } })) : null])
  return listTools
}

function drawTools() {
  render(tools,
    h('form', { class: 'search', role: 'search', key: 'search', on: { submit: (event) => { event.preventDefault(); list.element.focus() } } }, h('label', { class: 'unseen', for: 'reader-q' }, 'Search mail'),
      h('input', { id: 'reader-q', type: 'search', value: where.q, placeholder: 'Search mail: from:ben has:attachment', autocomplete: 'off', spellcheck: 'false', on: { input: (event) => typed(event.target.value) } })),
    listButtons(),
    h('p', { class: 'muted count', key: 'count' }, [list.words(), where.q ? fromServer() : `${number(sum(boxesOf(where.who), where.folder, 'unread'))} unread`].filter(Boolean).join(', ')))
}

/** @param {string} day "2019-03-04" */
async function jump(day) {
  const { rows } = list
  if (!day || !rows) return
  const place = await rows.locate({ key: '', ms: Date.parse(day) + 86399999 }).catch(() => -1)
  if (place < 0) return
  list.take(rows, place)
  list.mark(place)
}

/** What stands where there are no rows. */
function drawNote() {
  const { rows } = list
  const gone = live.phase === 'gone'
  const trouble = rows?.trouble ?? null
  const none = rows?.opened && !rows.loading && rows.total === 0 && !trouble
  list.element.hidden = !rows || (rows.total === 0 && (none || trouble !== null))
  render(note, ...standings(), where.folder === 'DRAFT' && !where.q ? drafts() : null,
    trouble && trouble.status !== 0 && rows?.total === 0 ? failed(trouble, () => { listed = ''; relist() }) : null,
    none && !gone ? empty(where.q ? SAID.unmatched : SAID.empty) : null)
}

/** What is wrong with the accounts that are shown. */
function standings() {
  const of = new Set(boxesOf(where.who).map((box) => box.account))
  const said = (live.state?.accounts ?? []).filter((one) => one.system === 'mail' && of.has(one.account)).map((one) => ({ key: one.account, ...standing(one) }))
  return said.filter((one) => one.words.length > 0).map((one) => h('p', { key: one.key, class: one.level }, ...one.words))
}

/** @type {{ account: string, id: string, to: string, subject: string, sending: number }[]} */
let written = []
let writtenAt = 0

/** Drafts that are kept here. */
function drafts() {
  if (Date.now() - writtenAt > 3000) void loadDrafts()
  const here = written.filter((one) => where.who === 'all' || one.account === where.who)
  return here.length === 0 ? null : h('ul', { class: 'drafts', 'aria-label': 'Drafts kept here' }, ...here.map((one) => h('li', { key: keyOf(one) },
    h('a', { href: '#' + addressOf({ d: keyOf(one) }) }, one.subject || '(no subject)'), h('span', { class: 'muted' }, one.to ? ` to ${one.to}` : ''))))
}

async function loadDrafts() {
  writtenAt = Date.now()
  const all = await Promise.all(accounts().map(async (account) => {
    const known = written.filter((one) => one.account === account)
    return get(`mail/${path(account)}/drafts`).then(({ items }) => items.map((/** @type {any} */ one) => ({ ...one, account })), () => known)
  }))
  written = all.flat()
  if (shown) redraw()
}

onKept(() => void loadDrafts())

/** Who wrote lately, for the fields of a message. */
function people() {
  const own = new Set(accounts().map(bare))
  return [...new Set([...(list.rows?.rows.values() ?? [])].map((row) => row.from).filter((one) => one && !own.has(bare(one))))]
}

function drawSide() {
  side.hidden = !talk && !where.d
  root.classList.toggle('reading', !side.hidden)
  if (writing) {
    const one = writing
    if (talk) talk.drawn = ''
    const leave = () => go({ d: '' })
    const send = () => void one.send(leave, () => go({ d: keyOf(one) }))
    const move = (/** @type {string} */ account) => void one.moveTo(account).then((moved) => {
      const field = side.querySelector('select')
      if (moved && writing === one) go({ d: keyOf(moved) })
      else if (field && writing === one) field.value = one.account
    })
    render(side, ...writeForm(one, { accounts: accounts(), people: people(), leave, send, discard: () => void one.discard(leave), move }))
  } else if (talk) talk.draw(side)
  else render(side)
}

function drawNow() {
  const of = boxesOf(where.who).filter((box) => box.status)
  const name = (/** @type {Box} */ box) => (of.length > 1 ? `${box.account.split('@')[0]}: ` : '')
  const words = of.map((box) => name(box) + running(/** @type {import('./reader_data.js').Status} */ (box.status), (id) => NAMES[id] ?? box.folder(id)?.name ?? id)).join(' ')
  render(now, live.phase === 'gone' ? `${SAID.gone} What was loaded can be read.` : words || 'Asking what runs…')
}

/** @type {Map<string, number>} */
const refused = new Map()

followNews((box, news) => {
  if (news) {
    notes.notify(box, news, (key) => list.rows?.places.has(key) === true, openNew)
    if (news.reset) forgetAllAhead(box.account)
    forgetAhead([...news.items, ...news.gone.map((id) => ({ account: box.account, id }))])
    takeNews(box, news)
  }
  const ended = (box.status?.actions?.refused ?? 0) * 1e6 - (box.status?.actions?.waiting ?? 0)
  if (box.status && refused.get(box.account) !== ended) {
    void tellRefused(box.account, !refused.has(box.account), opened_ms - 60000).catch(() => refused.delete(box.account))
    refused.set(box.account, ended)
    if (written.some((one) => one.sending)) void loadDrafts()
  }
  if (shown) redraw()
})

/** @param {Box} box @param {import('./reader_data.js').News} news */
function takeNews(box, news) {
  if (!shown || (where.who !== 'all' && where.who !== box.account)) return
  const { rows } = list
  if (talk?.account === box.account) talk.take(news)
  if (!rows) return
  const left = where.q ? [] : news.items.filter((row) => !belongs(row.labels, where.folder)).map(keyOf)
  for (const row of news.items) if (list.selected.has(keyOf(row))) list.selected.set(keyOf(row), row)
  for (const key of [...left, ...news.gone.map((id) => keyOf({ account: box.account, id }))]) list.selected.delete(key)
  for (const row of news.items) if (!rows.replace(row) && (where.q || belongs(row.labels, where.folder))) renewSoon() // a search may match it now
  rows.remove([...left, ...news.gone.map((id) => keyOf({ account: box.account, id }))])
  if (news.reset || news.archive) renewSoon()
  list.find()
  list.settle()
}

/** @returns {import('./keys.js').Keys} */
function keys() {
  const reading = talk !== null
  return {
    j: { words: 'next', run: () => turn(1) }, k: { words: 'previous', run: () => turn(-1) },
    Enter: { words: 'open', run: () => onMarked(() => { const row = list.marked(); if (row) go({ m: keyOf(row) }) }) },
    u: { words: 'back to the list', run: back }, x: { words: 'select', run: () => onMarked(() => { const row = list.marked(); if (row) list.select(row) }) },
    '* a': { words: 'select all', run: () => void selectAll() }, '.': { words: 'refresh', run: () => void refresh() },
    e: { words: 'archive', run: () => run('archive') }, '#': { words: 'trash', run: trash }, '!': { words: 'spam', run: () => run(inFolder('SPAM') ? 'unspam' : 'spam') },
    s: { words: 'star', run: star }, l: { words: 'label', run: () => choose('label') }, v: { words: 'move', run: () => choose('move') }, z: { words: 'undo', run: () => void undo() },
    c: { words: 'compose', run: () => write() }, I: { words: 'read', run: () => run('read') }, U: { words: 'unread', run: () => run('unread') },
    o: { words: 'keep offline', run: keep },
    ...(reading ? {
      r: { words: 'reply', run: () => void answer('reply') }, a: { words: 'reply to all', run: () => void answer('all') }, f: { words: 'forward', run: () => void answer('forward') },
      i: { words: 'load remote images', run: () => talk?.loadImages() }, Space: { words: 'scroll', run: () => scroll() },
    } : {}),
    '[': { words: 'newer', run: () => turn(-1) }, ']': { words: 'older', run: () => turn(1) },
  }
}

/** A page further; at the end to the next message. */
function scroll() {
  const by = side.clientHeight - 60
  if (side.scrollTop + side.clientHeight >= side.scrollHeight - 2) turn(1)
  else side.scrollTop += by
}

function enter() {
  shown = true
  begin()
  for (const box of boxesOf(where.who)) if (box.folders.length === 0) void loadFolders(box)
  if (writtenAt === 0) void loadDrafts()
}

window.addEventListener('beforeunload', (event) => { if (unsaved()) event.preventDefault() })
notes.watchHidden(() => (shown ? accounts().map(boxOf) : []))

/** @param {string | undefined} who @param {string | undefined} folder @param {URLSearchParams} params @returns {import('./page.js').View} */
export function readerView(who, folder, params) {
  const of = accounts()
  if (of.length === 0) return { title: 'Reader', up: '/', draw: () => [h('section', { class: 'card first' }, h('p', {}, ...command('No account yet. Run: `tidemark account add gmail you@example.com`')))] }
  where = { who: who ?? (of.length > 1 ? 'all' : of[0]), folder: folder ?? 'INBOX', q: params.get('q') ?? '', m: params.get('m') ?? '', d: params.get('d') ?? '' }
  enter()
  relist()
  openSide()
  return {
    get title() { return folderName() },
    keys, up: '/', count: () => sum(accounts().map(boxOf), 'INBOX', 'unread'), offline: () => offline(accounts().map(boxOf)),
    leave: () => {
      shown = false
      void writing?.close()
      queueMicrotask(() => { if (!shown) end() })
    },
    draw: () => {
      due = false
      relist() // an account may have come
      drawFolders()
      drawTools()
      drawNote()
      drawSide()
      drawNow()
      list.draw()
      readOn()
      return [root]
    },
  }
}
