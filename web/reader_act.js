// reader_act.js - what a person does with messages: shown at once, sent, and taken back by `z`.  A
// server that refuses later is told as well.
import { Trouble, get, path, post, remove } from './api.js'
import { afterPaint } from './dom.js'
import { boxOf, catchUp } from './reader_data.js'
import { keyOf } from './reader_rows.js'
import { tell, tellTrouble } from './say.js'
import { number } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {'archive' | 'inbox' | 'trash' | 'untrash' | 'spam' | 'unspam' | 'read' | 'unread' | 'star' | 'unstar' | 'label' | 'unlabel' | 'move' | 'delete' | 'pin' | 'unpin' | 'send'} Verb */
/** What can be taken back; `back` is called when it was; `opposite`: of what no server is told of.
 * @typedef {{ words: string, parts: { account: string, id: number | string }[], back: () => void, opposite?: () => Promise<void>, at?: number }} Done */

const MANY = 50 // in one request

/** @type {Record<Verb, [string[], string[], string]>} labels that it gives, labels that it takes, what is said; "@" is the one that was chosen */
const EFFECTS = {
  archive: [[], ['INBOX'], 'Archived'], inbox: [['INBOX'], [], 'In the inbox:'], trash: [['TRASH'], ['INBOX', 'SPAM'], 'In the trash:'], untrash: [['INBOX'], ['TRASH'], 'Out of the trash:'],
  spam: [['SPAM'], ['INBOX', 'TRASH'], 'Spam:'], unspam: [['INBOX'], ['SPAM'], 'No spam:'], read: [[], ['UNREAD'], 'Read:'], unread: [['UNREAD'], [], 'Unread:'],
  star: [['STARRED'], [], 'Starred'], unstar: [[], ['STARRED'], 'Without a star:'], label: [['@'], [], 'Labelled'], unlabel: [[], ['@'], 'Without the label:'], move: [['@'], ['INBOX'], 'Moved'],
  delete: [['GONE'], [], 'Deleted for ever in 10 s:'], pin: [[], [], 'Kept offline:'], unpin: [[], [], 'No longer kept offline:'], send: [[], [], 'Sending in 10 s.'],
}

/** A message as it is after an action.
 * @param {Row} row @param {Verb} verb @param {string} label @returns {Row} */
export function after(row, verb, label) {
  const [gives, takes] = EFFECTS[verb].slice(0, 2).map((list) => /** @type {string[]} */ (list).map((one) => (one === '@' ? label : one)))
  const labels = [...row.labels.filter((one) => !takes.includes(one) && !gives.includes(one)), ...gives]
  const local = verb === 'pin' || verb === 'unpin'
  return { ...row, labels, unread: labels.includes('UNREAD'), starred: labels.includes('STARRED'), pinned: local ? verb === 'pin' : row.pinned, pending: local ? row.pending : true }
}

/** Only there can it be done.
 * @type {Partial<Record<Verb, string>>} */
const NEEDS = { untrash: 'TRASH', delete: 'TRASH', unspam: 'SPAM' }

/** Whether an action may be done to a message: deleted for ever is what is in the trash, and nothing else.
 * @param {Row} row @param {Verb} verb */
export const allowed = (row, verb) => row.labels.includes(NEEDS[verb] ?? '') || !NEEDS[verb]

/** Whether an action does anything to a message.
 * @param {Row} row @param {Verb} verb */
export const changes = (row, verb) => (verb === 'pin' ? !row.pinned : verb === 'unpin' ? row.pinned === true : false) || EFFECTS[verb][0].some((one) => !row.labels.includes(one)) || EFFECTS[verb][1].some((one) => row.labels.includes(one))

/** @type {Done[]} */
const stack = []
let offered = 0
/** Refusals and sent messages that this page has told.
 * @type {Set<string>} */
const told = new Set()

export const canUndo = () => stack.length > 0

/** @param {Row[]} rows @returns {Map<string, Row[]>} */
function byAccount(rows) {
  const map = new Map()
  for (const row of rows) map.set(row.account, [...(map.get(row.account) ?? []), row])
  return map
}

/** @type {Promise<unknown>} */
let line = Promise.resolve()

/** One request after another: what was done first is done first by the server, and taken back after it was sent.
 * @template T @param {() => Promise<T>} work @returns {Promise<T>} */
function inLine(work) {
  const done = line.then(work)
  line = done.catch(() => {})
  return done
}

/** Sends an action; what it changes is shown before the answer, and put back if there is none.
 * @param {Verb} verb @param {Row[]} rows @param {{ label?: string, silent?: boolean, show: (rows: Row[]) => void, back: () => void }} more */
export async function act(verb, rows, { label = '', silent = false, show, back }) {
  if (rows.length === 0) return
  /** @type {Done} */
  const done = { words: `${EFFECTS[verb][2]} ${number(rows.length)}.`, parts: [], back }
  if (verb === 'pin' || verb === 'unpin') done.opposite = () => send(verb === 'pin' ? 'unpin' : 'pin', rows, '', { ...done, parts: [] })
  const acting = { ended_ms: Infinity }
  for (const row of rows) boxOf(row.account).acting.set(row.id, acting)
  show(rows.map((row) => after(row, verb, label)))
  if (!silent) offer(done)
  try {
    await inLine(async () => {
      await new Promise((go) => afterPaint(() => go(undefined)))
      await send(verb, rows, label, done)
    })
  } catch (error) {
    if (done.parts.length === 0 && stack.includes(done)) stack.splice(stack.indexOf(done), 1)
    if (!silent) tellTrouble(error, `${EFFECTS[verb][2].replace(':', '')} ${number(rows.length)}`)
    back()
  }
  acting.ended_ms = performance.now()
  for (const account of byAccount(rows).keys()) void catchUp(boxOf(account))
}

/** @param {Verb} verb @param {Row[]} rows @param {string} label @param {Done} done */
async function send(verb, rows, label, done) {
  for (const [account, list] of byAccount(rows)) {
    for (let at = 0; at < list.length; at += MANY) {
      const messages = list.slice(at, at + MANY).map((row) => row.id)
      const { id } = await post(`mail/${path(account)}/actions`, { do: verb, messages, ...(label ? { label } : {}) })
      if (id) done.parts.push({ account, id }) // 0: it was so already
    }
  }
}

/** Can be taken back from now on.
 * @param {Done} done */
export function offer(done) {
  done.at = ++offered
  stack.push(done)
  if (stack.length > 50) stack.shift()
  tell(done.words, { undo: () => void undo() })
}

/** Takes back the last one.  One whose request nobody answered can be taken back again. */
export async function undo() {
  const done = stack.pop()
  if (!done) {
    tell('Nothing to undo.')
    return
  }
  /** @type {Set<string>} */
  const of = new Set()
  let again = false
  try {
    await inLine(async () => {
      for (const { account } of done.parts) of.add(account)
      while (done.parts.length > 0) {
        const { account, id } = done.parts[done.parts.length - 1]
        await remove(`mail/${path(account)}/actions/${path(String(id))}`).catch(async (error) => {
          // The answer to an earlier attempt was lost: it is undone.
          const { items } = error instanceof Trouble && error.status === 409 ? await listed(account, 'undone') : { items: [] }
          if (!items.some((/** @type {any} */ one) => one.id === id)) throw error
        })
        done.parts.pop()
      }
      await done.opposite?.()
    })
    if (of.size > 0 || done.opposite) tell(`Undone: ${done.words}`)
    done.back()
  } catch (error) {
    again = error instanceof Trouble && (error.status === 0 || error.status >= 500)
    if (error instanceof Trouble && error.status === 409) tell('Too late to undo: it has gone out.', { bad: true })
    else tellTrouble(error, `Undo “${done.words}”`)
  }
  if (again) {
    stack.push(done)
    stack.sort((a, b) => (a.at ?? 0) - (b.at ?? 0))
  }
  for (const account of of) void catchUp(boxOf(account))
}

/** @param {string} account @param {string} state @param {number} [limit] */
const listed = (account, state, limit = 500) => get(`mail/${path(account)}/actions`, { limit, state })

const REFUSED = 'tidemark.refused'

/** Refusals that a page of this browser has told, by account.
 * @returns {Record<string, string[]>} */
function toldBefore() {
  try {
    return JSON.parse(localStorage.getItem(REFUSED) ?? '{}')
  } catch {
    return {}
  }
}

/** Tells each action that the server refused, once: also what was refused while no page was open.
 * @param {string} account @param {boolean} first this page has not asked before @param {number} since when this page was opened */
export async function tellRefused(account, first, since) {
  const keyed = (/** @type {any} */ one) => keyOf({ account, id: `${one.id} ${one.made_unix_ms}` })
  if (first) for (const key of toldBefore()[account] ?? []) told.add(key)
  const [refused, done] = await Promise.all([listed(account, 'refused'), first ? { items: [] } : listed(account, 'done', 50)])
  const fresh = refused.items.filter((/** @type {any} */ one) => !told.has(keyed(one)))
  for (const one of fresh) told.add(keyed(one))
  localStorage.setItem(REFUSED, JSON.stringify({ ...toldBefore(), [account]: refused.items.map(keyed) }))
  const why = [...new Set(fresh.map((/** @type {any} */ one) => String(one.error ?? 'no reason given').replace(/\.$/, '')))]
  if (fresh.length > 0) {
    // One refusal does not hide another that nobody closed yet.
    const open = document.querySelector('#told .trouble span')?.textContent ?? ''
    tell(`${open.startsWith('Gmail refused') ? open + ' ' : ''}Gmail refused${fresh.length > 1 ? ` ${number(fresh.length)} actions` : ''}: ${why.join('; ')}. Put back as it was.`, { bad: true })
  }
  for (const one of done.items) {
    if (one.do !== 'send' || one.made_unix_ms < since || told.has(keyed(one))) continue
    told.add(keyed(one))
    if (fresh.length === 0) tell('Sent.')
  }
}
