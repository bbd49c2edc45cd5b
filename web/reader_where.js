// reader_where.js - where the reader is: what the address names, and the conversation that is open.
import { page } from './page.js'
import { boxOf } from './reader_data.js'

/** @typedef {import('./reader_data.js').Box} Box */
/** @typedef {import('./reader_talk.js').Talk} Talk */
/** Where the address leads: an account or "all", a folder, a search, an opened message or draft ("ACCOUNT/ID").
 * @typedef {{ who: string, folder: string, q: string, m: string, d: string }} Where */

export const NAMES = /** @type {Record<string, string>} */ ({ INBOX: 'Inbox', STARRED: 'Starred', IMPORTANT: 'Important', SENT: 'Sent', DRAFT: 'Drafts', ALL: 'All mail', SPAM: 'Spam', TRASH: 'Trash' })

/** @type {Where} */
export let where = { who: '', folder: '', q: '', m: '', d: '' }
export let shown = false
/** @type {Talk | null} */
export let talk = null

/** @param {Where} to */
export function enterAt(to) {
  where = to
  shown = true
}

export const leave = () => { shown = false }

/** @param {Talk | null} other */
export const setTalk = (other) => { talk = other }

/** @param {Partial<Where>} to */
export function addressOf(to) {
  const { who, folder, q, m, d } = { ...where, ...to }
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries({ q, m, d })) if (value) params.set(name, value)
  const text = params.toString()
  return `/reader/${encodeURIComponent(who)}/${encodeURIComponent(folder)}${text ? '?' + text : ''}`
}

let due = false

/** What was due is drawn. */
export const drawn = () => { due = false }

/** Once for all that changes at once: opening a message changes the mark, the list, the conversation and counts. */
export function redraw() {
  if (due) return
  due = true
  queueMicrotask(() => {
    if (!due) return // it was drawn meanwhile
    due = false
    page.redraw()
  })
}

/** @param {Partial<Where>} to */
export const go = (to) => page.go(addressOf(to))

/** @param {string} key "ada@example.com/18f2" @returns {[string, string]} */
export const parted = (key) => [key.slice(0, key.lastIndexOf('/')), key.slice(key.lastIndexOf('/') + 1)]

/** @param {string} account @param {string} id */
export const labelName = (account, id) => NAMES[id] ?? boxOf(account).folder(id)?.name ?? id

export const folderName = () => (where.q ? 'Search' : where.who === 'all' ? labelName('', where.folder) : labelName(where.who, where.folder))

/** @param {Box[]} of @param {string} folder @param {'unread' | 'total'} what */
export const sum = (of, folder, what) => of.reduce((all, box) => all + (box.folder(folder)?.[what] ?? 0), 0)

/** What a search finds is not in the folder that was open before.
 * @param {string} folder */
export const inFolder = (folder) => where.folder === folder && !where.q
