// words.js - numbers, times and sizes as people read them.  Times are those of this browser's zone.

/** What states are called; the same words wherever they are said. */
export const SAID = {
  gone: 'tidemark serve does not answer.',
  empty: 'Nothing here.',
  unmatched: 'No message matches. in:anywhere includes spam and trash.',
  fetching: 'Not stored here yet. Fetching…',
  unreachable: 'Not stored here, and there is no network.',
  gone_there: 'It is gone from Gmail, and it is not stored here.',
}

const numbers = new Intl.NumberFormat('en')

/** @param {number} value */
export const number = (value) => numbers.format(value)

/** "1 job", "3 jobs"
 * @param {number} count @param {string} one @param {string} [many] */
export const count = (count, one, many = one + 's') => `${number(count)} ${count === 1 ? one : many}`

const two = (/** @type {number} */ value) => String(value).padStart(2, '0')

/** "2026-11-16"
 * @param {number} ms */
export function date(ms) {
  const at = new Date(ms)
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`
}

/** "09:14"
 * @param {number} ms */
export function clock(ms) {
  const at = new Date(ms)
  return `${two(at.getHours())}:${two(at.getMinutes())}`
}

/** "09:14" of today, else with the date.
 * @param {number | null | undefined} ms */
export function time(ms) {
  if (!ms) return '-'
  return date(ms) === date(Date.now()) ? clock(ms) : `${date(ms)} ${clock(ms)}`
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** As short as a list wants it: "09:14" of today, "8 Nov" of this year, else "2024-11-08".
 * @param {number} ms @param {number} [now] */
export function shortTime(ms, now = Date.now()) {
  const at = new Date(ms)
  if (date(ms) === date(now)) return clock(ms)
  return at.getFullYear() === new Date(now).getFullYear() ? `${at.getDate()} ${MONTHS[at.getMonth()]}` : date(ms)
}

/** "8 s", "3 min", "2 h 5 min", "4 days"
 * @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(1, Math.round(ms / 1000))
  if (seconds < 90) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 90) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`
  return count(Math.round(hours / 24), 'day')
}

/** "3 min ago"
 * @param {number | null | undefined} ms @param {number} [now] */
export function ago(ms, now = Date.now()) {
  if (!ms) return 'never'
  return now - ms < 2000 ? 'now' : duration(now - ms) + ' ago'
}

/** "340 kB"
 * @param {number} bytes */
export function size(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let at = 0
  while (bytes >= 999.5 && at < units.length - 1) {
    bytes /= 1000
    at++
  }
  return `${bytes < 10 && at > 0 ? bytes.toFixed(1) : Math.round(bytes)} ${units[at]}`
}

/** "5.0" below ten, else without a fraction.
 * @param {number} value */
export const rate = (value) => (value < 10 ? value.toFixed(1) : number(Math.round(value)))

/** "Mail"
 * @param {string} word */
export const title = (word) => word.charAt(0).toUpperCase() + word.slice(1)

/** A first letter as a sentence has it, a full stop at the end.
 * @param {string} text */
export function sentence(text) {
  const trimmed = text.trim()
  return trimmed === '' ? '' : title(trimmed) + (/[.!?:]$/.test(trimmed) ? '' : '.')
}
