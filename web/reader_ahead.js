// reader_ahead.js - the message that will be read next, asked for before its key is pressed, or while the
// button of the mouse is down on it.  Only what is stored here: looking ahead makes no call of the network,
// and marks nothing as read.
import { get, path } from './api.js'
import { keyOf } from './reader_rows.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** `message` is there once it has come; `coming` gives null where there is none to show.
 * @typedef {{ at_ms: number, message: any, coming: Promise<any> }} Ahead */

const KEPT = 4
const FRESH_MS = 120000 // the address of its parts holds for ten minutes

/** The oldest first.
 * @type {Map<string, Ahead>} */
const kept = new Map()

/** @param {Row | undefined} row */
export function lookAhead(row) {
  if (!row || row.body === 'none' || kept.has(keyOf(row))) return
  const key = keyOf(row)
  /** @type {Ahead} */
  const ahead = { at_ms: Date.now(), message: null, coming: Promise.resolve(null) }
  ahead.coming = get(`mail/${path(row.account)}/messages/${path(row.id)}`).then((message) => {
    ahead.message = message.body === 'none' ? null : message // it was evicted meanwhile: who opens it asks for it
    return ahead.message
  }, () => null)
  kept.set(key, ahead)
  for (const old of [...kept.keys()].slice(0, -KEPT)) kept.delete(old)
}

/** What was asked for, once.
 * @param {{ account: string, id: string }} of @returns {Ahead | undefined} */
export function takeAhead(of) {
  const ahead = kept.get(keyOf(of))
  kept.delete(keyOf(of))
  return ahead && Date.now() - ahead.at_ms < FRESH_MS ? ahead : undefined
}

/** They have changed.
 * @param {{ account: string, id: string }[]} of */
export function forgetAhead(of) {
  for (const one of of) kept.delete(keyOf(one))
}

/** Everything may have changed.
 * @param {string} account */
export function forgetAllAhead(account) {
  for (const key of kept.keys()) if (key.startsWith(account + '/')) kept.delete(key)
}
