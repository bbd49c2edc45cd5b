// reader_words.js - what runs for the reader now and why, in a line.
import { clock, count, duration, number, title } from './words.js'

/** @typedef {import('./reader_data.js').Status} Status */

/** @type {Record<string, (what: string) => string>} */
const DOING = {
  'reader.body': () => 'Fetching this message, because you opened it',
  'reader.page': (what) => `Fetching older messages of ${what || 'this folder'}, because you reached the end`,
  'reader.refresh': (what) => `Looking for news in ${what || 'this folder'}, because you asked`,
  'reader.search': (what) => `Searching Gmail${what ? ` for “${what}”` : ''}, because you do`,
  'reader.action': () => 'Telling Gmail what you did',
  'reader.offline': () => 'Fetching messages that you keep offline',
  'reader.headers': (what) => (what ? 'Fetching older headers' : 'Looking for new mail'),
  'reader.people': () => 'Gathering whom you write to',
  'reader.folders': () => 'Fetching the list of folders',
  'reader.evict': () => 'Making room in the cache',
}

/** "12 of 30 days"; "12 days back", where nobody knows how many there are.
 * @param {{ done: number, total: number | null, unit?: string }} initial */
const progress = ({ done, total, unit = '' }) => (total === null ? `${number(done)} ${unit} back` : `${number(done)} of ${number(total)}${unit && ' '}${unit}`)

/** @param {Status} status @param {(id: string) => string} folder @param {number} [now] */
export function running(status, folder, now = Date.now()) {
  const waiting = Object.values(status.waiting ?? {}).reduce((sum, one) => sum + one, 0)
  const first = status.initial ? `First sync, ${progress(status.initial)}.` : `${title(status.state)}.`
  const acts = status.actions?.waiting ?? 0
  if (status.offline_since) return `Offline since ${clock(status.offline_since)}. ${count(acts, 'action')} wait${acts === 1 ? 's' : ''}.`
  const doing = status.doing ? (DOING[status.doing.kind]?.(folder(status.doing.what)) ?? status.doing.kind) : ''
  const rest = waiting > 0 ? `${count(waiting, 'job')} wait${waiting === 1 ? 's' : ''}${doing ? ' for it' : ''}` : acts > 0 ? `${count(acts, 'action')} wait${acts === 1 ? 's' : ''}` : 'nothing waits'
  const next = status.next_poll_unix_ms && !doing && status.next_poll_unix_ms > now ? `; looks for new mail in ${duration(status.next_poll_unix_ms - now)}` : ''
  return `${first} ${doing ? `${doing}; ${rest}` : title(rest)}${next}.`
}
