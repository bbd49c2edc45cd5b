// reader_quote.js - the rules of answering: who gets it, what it is called, what is quoted.
import { time } from './words.js'

/** @typedef {{ to: string, cc: string, bcc: string, subject: string, text: string, in_reply_to: string, references: string, thread: string }} Letter */

/** The addresses of a header; commas in names and comments part nothing.
 * @param {string} header @returns {string[]} */
export function addresses(header) {
  const found = []
  let one = ''
  let quoted = false
  for (const letter of header) {
    if (letter === '"') quoted = !quoted
    if (letter === ',' && !quoted) {
      found.push(one.trim())
      one = ''
    } else {
      one += letter
    }
  }
  return [...found, one.trim()].filter((part) => part !== '')
}

/** "ben@harbour.example" of "Ben Ochoa <Ben@harbour.example>"
 * @param {string} one */
export const bare = (one) => (/<([^<>]+)>\s*$/.exec(one)?.[1] ?? one).trim().toLowerCase()

/** Each address once, none of `without`.
 * @param {string[]} list @param {string[]} without */
function others(list, without) {
  const seen = new Set(without.map(bare))
  return list.filter((one) => !seen.has(bare(one)) && seen.add(bare(one)))
}

/** @param {string} prefix @param {string} subject */
const titled = (prefix, subject) => (subject.toLowerCase().startsWith(prefix.toLowerCase()) ? subject : `${prefix} ${subject}`)

/** @param {string} text */
const quoted = (text) => text.replace(/\n+$/, '').split('\n').map((line) => (line.startsWith('>') ? '>' + line : '> ' + line)).join('\n')

/** Names of messages as headers have them; an answer may have them bare.
 * @param {string | undefined} text */
const bracketed = (text) => (text ?? '').split(/[\s<>]+/).filter(Boolean).map((id) => `<${id}>`).join(' ')

/** @param {any} message @param {string[]} own @param {boolean} all @returns {Letter} */
export function reply(message, own, all) {
  const from = addresses(message.reply_to || message.from || '')
  const mine = own.map(bare).includes(bare(message.from ?? ''))
  const to = mine ? addresses(message.to ?? '') : from
  const cc = all ? others([...(mine ? [] : addresses(message.to ?? '')), ...addresses(message.cc ?? '')], [...own, ...to]) : []
  return {
    to: others(to, []).join(', '), cc: cc.join(', '), bcc: '', subject: titled('Re:', message.subject ?? ''),
    text: `\n\nOn ${time(message.date_unix_ms ?? message.internal_unix_ms)}, ${message.from} wrote:\n${quoted(message.text ?? '')}\n`,
    in_reply_to: bracketed(message.message_id), references: bracketed(`${message.references || message.in_reply_to || ''} ${message.message_id ?? ''}`), thread: message.thread ?? '',
  }
}

/** @param {any} message @returns {Letter} */
export function forward(message) {
  const lines = [['From', message.from], ['Date', time(message.date_unix_ms ?? message.internal_unix_ms)], ['Subject', message.subject], ['To', message.to], ['Cc', message.cc]]
  return {
    to: '', cc: '', bcc: '', subject: titled('Fwd:', message.subject ?? ''),
    text: `\n\n---------- Forwarded message ----------\n${lines.filter(([, value]) => value).map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${message.text ?? ''}\n`,
    in_reply_to: '', references: '', thread: '',
  }
}

/** Of a mailto link: "mailto:ben@harbour.example?subject=Plan"
 * @param {string} url @returns {Letter} */
export function mailto(url) {
  const [to, query] = url.slice('mailto:'.length).split('?')
  const params = new URLSearchParams(query ?? '')
  return { to: new URLSearchParams('to=' + to.replaceAll('+', '%2B')).get('to') ?? '', cc: params.get('cc') ?? '', bcc: params.get('bcc') ?? '', subject: params.get('subject') ?? '', text: params.get('body') ?? '', in_reply_to: '', references: '', thread: '' }
}
