// reader_open.js - what is open beside the list: a conversation, or a message being written; drafts that are kept here.
import { get, path, post } from './api.js'
import { afterPaint, h } from './dom.js'
import { page } from './page.js'
import { act } from './reader_act.js'
import { lookAhead } from './reader_ahead.js'
import { accounts, boxOf, catchUp, offline } from './reader_data.js'
import { onMarked, showRows } from './reader_do.js'
import { forward, mailto, reply } from './reader_quote.js'
import { keyOf } from './reader_rows.js'
import { list, seekOpened } from './reader_source.js'
import { Talk } from './reader_talk.js'
import { addressOf, go, labelName, parted, redraw, setTalk, shown, talk, where } from './reader_where.js'
import { begun, blank, onKept, reopen } from './reader_write.js'
import { announce, tellTrouble } from './say.js'
import { SAID } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_write.js').Writing} Writing */

export const side = h('section', { class: 'talk', 'aria-label': 'Conversation', tabindex: -1 })
/** @type {Writing | null} */
export let writing = null

/** Where the next message is that will be read. */
let direction = 1

/** @param {number} step */
export function turn(step) {
  direction = Math.sign(step)
  list.mark(list.place + step)
  if (talk) onMarked(() => {
    const row = list.marked()
    if (talk && row && keyOf(row) === list.key) page.turn(addressOf({ m: keyOf(row), d: '' }))
  })
}

/** @param {'reply' | 'all' | 'forward'} how @param {any} [message] */
export async function answer(how, message = talk?.opened) {
  const of = talk
  if (!message || !of) return
  if (message.body === 'none') announce(SAID.fetching)
  const whole = await of.whole(message)
  if (of !== talk || !shown) return // somebody went on
  const made = begun(of.account, how === 'forward' ? forward(whole) : reply(whole, accounts(), how === 'all'))
  if (how === 'forward') void made.bring(whole)
  go({ d: keyOf(made) })
}

/** A draft is opened to be continued; one that cannot be, and one in the trash, to be read.
 * @param {Row} row */
export function openRow(row) {
  const read = () => go({ m: keyOf(row), d: '' })
  if (row.labels.includes('DRAFT') && !row.labels.includes('TRASH')) void resume(row, read)
  else read()
}

/** Continues a draft that was begun in Gmail, once its text is here.
 * @param {{ account: string, id: string }} row @param {() => void} [refused] who waits for it is still here */
async function resume({ account, id }, refused = () => {}) {
  const from = addressOf({})
  try {
    for (let tries = 0; tries < 100 && addressOf({}) === from; tries++) {
      const made = await post(`mail/${path(account)}/drafts`, { message: id })
      if (made.id) {
        go({ d: keyOf({ account, id: made.id }), m: '' })
        return void catchUp(boxOf(account))
      }
      if (offline([boxOf(account)])) throw new Error(SAID.unreachable)
      if (tries === 0) announce(SAID.fetching)
      await new Promise((then) => setTimeout(then, 100))
    }
    if (addressOf({}) === from) throw new Error('Its text has not come yet.')
  } catch (error) {
    tellTrouble(error, 'Continue')
    if (shown && addressOf({}) === from) refused()
  }
}

/** @param {string} [url] */
export function write(url) {
  const account = where.who === 'all' ? talk?.account ?? accounts()[0] : where.who
  go({ d: keyOf(begun(account, url ? mailto(url) : blank())), m: where.m })
}

/** Whether what has the focus goes away with the pane. */
const inside = () => side.contains(document.activeElement) || document.activeElement === document.body

/** Opens what the address names.
 * @param {() => import('./dom.js').Child} buttons above a conversation */
export function openSide(buttons) {
  const [account, id] = parted(where.m)
  if (!where.m) {
    if (talk && !where.d && inside()) setTimeout(() => list.element.focus())
    setTalk(null)
  } else if (!talk || talk.account !== account || talk.id !== id) {
    const row = list.rows?.at(list.rows.places.get(where.m) ?? -1)
    const of = new Talk(account, id, row, {
      offline: () => offline([boxOf(account)]) !== null, shown: () => shown && talk?.account === account && talk.id === id, changed: () => redraw(), write, answer, resume: (message) => void resume({ account, id: message.id }), label: (one) => labelName(account, one), buttons,
      read: (rows) => void act('read', rows, { silent: true, show: showRows, back: () => {} }),
    })
    setTalk(of)
    list.expect(where.m)
    if (list.place >= 0) list.mark(list.place)
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

export function back() {
  if (where.d) go({ d: '' })
  else if (where.m) go({ m: '' })
  else if (where.q) go({ q: '' })
  else page.go('/')
}

// ---- drafts

/** @type {{ account: string, id: string, to: string, subject: string, sending: number }[]} */
export let written = []
export let writtenAt = 0

export async function loadDrafts() {
  writtenAt = Date.now()
  const all = await Promise.all(accounts().map(async (account) => {
    const known = written.filter((one) => one.account === account)
    return get(`mail/${path(account)}/drafts`).then(({ items }) => items.map((/** @type {any} */ one) => ({ ...one, account })), () => known)
  }))
  written = all.flat()
  if (shown) redraw()
}

onKept(() => void loadDrafts())
list.owner.open = openRow
