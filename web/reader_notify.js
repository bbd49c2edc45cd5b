// reader_notify.js - new mail: said to who cannot see it; while nobody looks, a notification of the
// desktop where somebody asked for it.
import { catchUp } from './reader_data.js'
import { nameOf } from './reader_list.js'
import { announce } from './say.js'

/** @typedef {import('./reader_data.js').Box} Box */
/** @typedef {import('./reader_data.js').News} News */

const STORED = 'tidemark.notify'
const HIDDEN_MS = 60000
const NEW_MS = 3600000

export const wanted = () => localStorage.getItem(STORED) === 'on' && 'Notification' in window && Notification.permission === 'granted'

/** @param {boolean} on @returns {Promise<boolean>} whether it is on now */
export async function want(on) {
  if (on && 'Notification' in window && (await Notification.requestPermission()) === 'granted') localStorage.setItem(STORED, 'on')
  else localStorage.removeItem(STORED)
  return wanted()
}

/** @type {Set<string>} */
const told = new Set()

/** A person did something to them: they are not new, wherever they appear again.
 * @param {import('./reader_data.js').Row[]} rows */
export const know = (rows) => { for (const row of rows) told.add(row.account + '/' + row.id) }

/** `known`: whether a message was in the list before, and only its labels are others.
 * @param {Box} box @param {News} news @param {(key: string) => boolean} known @param {(account: string, id: string) => void} open */
export function notify(box, news, known, open) {
  if (news.reset || box.status?.state === 'initial') return
  for (const row of news.items) {
    const key = box.account + '/' + row.id
    if (!row.unread || !row.labels.includes('INBOX') || told.has(key) || known(key) || row.pending || Date.now() - row.internal_unix_ms > NEW_MS) continue
    told.add(key)
    if (!document.hidden && document.hasFocus()) announce(`New mail from ${nameOf(row.from)}: ${row.subject || '(no subject)'}`)
    else if (wanted()) show(key, row, () => open(box.account, row.id))
  }
}

/** @param {string} key @param {import('./reader_data.js').Row} row @param {() => void} open */
function show(key, row, open) {
  const note = new Notification(nameOf(row.from), { body: row.subject, tag: key })
  note.onclick = () => { window.focus(); open(); note.close() }
}

/** The stream is closed while the page is hidden; what is stored here is then asked for once a minute.
 * @param {() => Box[]} boxes */
export function watchHidden(boxes) {
  setInterval(() => { if (document.hidden) for (const box of boxes()) void catchUp(box) }, HIDDEN_MS)
}
