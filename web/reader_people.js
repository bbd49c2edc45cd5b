// reader_people.js - recipients, completed while they are typed: from the archive, and from who wrote
// lately.  A field has several addresses; what is completed is the last of them.
import { get, path } from './api.js'
import { page } from './page.js'
import { bare } from './reader_quote.js'

const SHOWN = 12
const LETTERS = 2

/** What was asked for last, and who was found.  `off`: the server knows of nobody.
 * @type {{ account: string, part: string, found: string[], off: boolean }} */
let last = { account: '', part: '', found: [], off: false }

/** The last address of a field and what stands before it; commas in names part nothing.
 * @param {string} text @returns {[string, string]} */
export function lastOf(text) {
  let quoted = false
  let at = 0
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '"') quoted = !quoted
    else if (text[i] === ',' && !quoted) at = i + 1
  }
  const part = text.slice(at).trimStart()
  return [text.slice(0, text.length - part.length), part]
}

/** "Ben Ochoa <ben@harbour.example>"
 * @param {{ name?: string, address: string }} one */
const named = ({ name, address }) => (!name ? address : /[,"<>@;:()[\]\\]/.test(name) ? `"${name.replace(/["\\]/g, '')}" <${address}>` : `${name} <${address}>`)

/** Asks the archive who begins like this.
 * @param {string} account @param {string} text of a field */
export function askPeople(account, text) {
  const [, part] = lastOf(text)
  if (last.off || part.length < LETTERS || part.includes('<') || (last.account === account && last.part === part)) return
  last = { ...last, account, part }
  get(`mail/${path(account)}/people`, { q: part, limit: SHOWN }).then(({ items }) => {
    if (last.account !== account || last.part !== part) return // somebody typed on
    last = { ...last, found: items.map(named) }
    page.redraw()
  }, (error) => { if (error.status === 404) last = { ...last, off: true } })
}

/** What a field may become: each address once, none that stands in it.
 * @param {string} account @param {string} text @param {string[]} lately */
export function completed(account, text, lately) {
  const [before, part] = lastOf(text)
  if (part.length < LETTERS || part.includes('<')) return []
  const found = last.account === account ? last.found : []
  const seen = new Set([...before.split(',').map(bare), ''])
  const fits = [...found, ...lately].filter((one) => one.toLowerCase().includes(part.toLowerCase()) && !seen.has(bare(one)) && seen.add(bare(one)))
  return fits.slice(0, SHOWN).map((one) => before + one)
}
