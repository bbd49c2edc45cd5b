// reader_act.js - what a person does with messages: shown at once, sent, and taken back by `z`.  A
// server that refuses later is told as well.
import { Trouble, get, path, post, remove } from './api.js'
import { boxOf, catchUp } from './reader_data.js'
import { keyOf } from './reader_rows.js'
import { tell, tellTrouble } from './say.js'
import { number } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {'archive' | 'inbox' | 'trash' | 'untrash' | 'spam' | 'unspam' | 'read' | 'unread' | 'star' | 'unstar' | 'label' | 'unlabel' | 'move' | 'delete' | 'pin' | 'unpin' | 'send'} Verb */
/** What can be taken back; `back` is called when it was.
 * @typedef {{ words: string, parts: { account: string, id: number | string }[], back: () => void }} Done */

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
  return { ...row, labels, unread: labels.includes('UNREAD'), starred: labels.includes('STARRED'), pending: true }
}

/** Whether an action does anything to a message.
 * @param {Row} row @param {Verb} verb */
export const changes = (row, verb) => EFFECTS[verb][0].some((one) => !row.labels.includes(one)) || EFFECTS[verb][1].some((one) => row.labels.includes(one))

/** @type {Done[]} */
const stack = []
/** @type {Set<string>} */
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
  show(rows.map((row) => after(row, verb, label)))
  if (!silent) offer(done)
  try {
    await inLine(() => send(verb, rows, label, done))
  } catch (error) {
    if (done.parts.length === 0 && stack.includes(done)) stack.splice(stack.indexOf(done), 1)
    if (!silent) tellTrouble(error, `${EFFECTS[verb][2].replace(':', '')} ${number(rows.length)}`)
    back()
  }
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
  stack.push(done)
  if (stack.length > 50) stack.shift()
  tell(done.words, { undo: () => void undo() })
}

/** Takes back the last one. */
export async function undo() {
  const done = stack.pop()
  if (!done) {
    tell('Nothing to undo.')
    return
  }
  try {
    await inLine(async () => {
      for (const { account, id } of [...done.parts].reverse()) await remove(`mail/${path(account)}/actions/${path(String(id))}`)
    })
    if (done.parts.length > 0) tell(`Undone: ${done.words}`)
    done.back()
  } catch (error) {
    if (error instanceof Trouble && error.status === 409) tell('Too late to undo: it has gone out.', { bad: true })
    else tellTrouble(error, `Undo “${done.words}”`)
  }
  for (const { account } of done.parts) void catchUp(boxOf(account))
}

/** Tells each action that the server refused, once.
 * @param {string} account @param {number} since */
export async function tellRefused(account, since) {
  const { items } = await get(`mail/${path(account)}/actions`, { limit: 50 })
  for (const one of items) {
    const key = keyOf({ account, id: String(one.id) })
    if (told.has(key) || one.made_unix_ms < since) continue
    if (one.state === 'refused') tell(`Gmail refused: ${String(one.error ?? 'no reason given').replace(/\.$/, '')}. Put back as it was.`, { bad: true })
    else if (one.state === 'done' && one.do === 'send') tell('Sent.')
    else continue
    told.add(key)
  }
}
