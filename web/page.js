// page.js - what views share: going somewhere, drawing again, loading, and the words of each state.
import { Trouble } from './api.js'
import { afterPaint, h } from './dom.js'
import { Marks } from './grid.js'
import { SAID } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./keys.js').Keys} Keys */
/** A view draws itself from what it has; `load` fetches that again, when the state has changed.  `count` is in the title of the window;
 * `offline` knows better than the state since when there is no network.
 * @typedef {{ title: string, draw: () => Child[], load?: () => Promise<void>, keys?: () => Keys, marks?: Marks, up?: string,
 *   live?: boolean, leave?: () => void, count?: () => number, offline?: () => { since: number, waiting: number } | null }} View */

const AGAIN_MS = 1000

export const page = {
  redraw: () => {},
  /** Arrives at once: a change of `location.hash` would tell of itself only after a way through the browser.
   * @param {string} route "/jobs?state=failed" */
  go: (route) => {
    showAddress()
    if (route === (turned ? turned.route : location.hash.slice(1))) return
    turned = null
    if (!says(route) && !wrote('pushState', route)) later(route, 'pushState')
    page.arrive(route)
  },
  /** Stays in the same view: no entry of the history.  The address follows what is shown; a key that is held changes it once for several messages.
   * @param {string} route */
  turn: (route) => {
    if (turned === null) afterPaint(showAddress)
    turned = { route, from: location.hash, how: turned?.how ?? 'replaceState' }
    page.arrive(route)
  },
  /** At what the address says, if no route is given.
   * @type {(route?: string) => void} */
  arrive: () => {},
}

/** Where the page is, if the address does not say so yet; somebody who went elsewhere meanwhile is there.
 * @type {{ route: string, from: string, how: 'pushState' | 'replaceState' } | null} */
let turned = null
let tried = 0

/** @param {string} route */
const says = (route) => location.hash === new URL('#' + route, location.href).hash

/** A browser takes some 200 addresses in ten seconds: of more it complains, or it does nothing.
 * @param {'pushState' | 'replaceState'} how @param {string} route */
function wrote(how, route) {
  try {
    history[how](null, '', '#' + route)
  } catch {
    // The same as nothing.
  }
  return says(route)
}

/** The page is there all the same; its address is written when the browser takes one again.
 * @param {string} route @param {'pushState' | 'replaceState'} how */
function later(route, how) {
  turned = { route, from: location.hash, how }
  clearTimeout(tried)
  tried = window.setTimeout(showAddress, AGAIN_MS)
}

function showAddress() {
  const due = turned
  turned = null
  if (due?.from === location.hash && !says(due.route) && !wrote(due.how, due.route)) later(due.route, due.how)
}

// Who goes back or forward is where the address says.
window.addEventListener('hashchange', () => { turned = null })
// To a browser the page is still at the old address: a link to there would lead nowhere.
document.addEventListener('click', (event) => {
  const at = turned && event.target instanceof Element ? event.target.closest('a[href^="#"]') : null
  if (!(at instanceof HTMLAnchorElement) || at.hash !== location.hash || event.ctrlKey || event.metaKey || event.shiftKey) return
  event.preventDefault()
  page.go(at.hash.slice(1))
})

/** @type {Map<string, Marks>} */
const marks = new Map()

/** The marks of a list, by its name.
 * @param {string} name */
export function marksOf(name) {
  let found = marks.get(name)
  if (!found) marks.set(name, found = new Marks(() => page.redraw()))
  return found
}

/** @template T */
export class Loader {
  /** @param {() => Promise<T>} fetch */
  constructor(fetch) {
    this.fetch = fetch
    /** @type {T | undefined} */
    this.data = undefined
    /** @type {Trouble | undefined} */
    this.trouble = undefined
    this.began = Date.now()
    this.turn = 0
  }

  /** The newest of several answers wins, whatever the order in which they come. */
  async load() {
    const turn = ++this.turn
    if (this.data === undefined) setTimeout(() => page.redraw(), 160)
    try {
      const data = await this.fetch()
      if (turn === this.turn) {
        this.data = data
        this.trouble = undefined
      }
    } catch (error) {
      if (turn === this.turn) this.fail(error instanceof Trouble ? error : new Trouble(-1, { detail: String(error) }))
    }
    page.redraw()
  }

  /** A busy machine is asked again, while this view is shown.
   * @param {Trouble} trouble */
  fail(trouble) {
    const { turn } = this
    const { hash } = location
    this.trouble = trouble
    if (trouble.status === 503) setTimeout(() => { if (turn === this.turn && hash === location.hash) void this.load() }, 2000)
  }

  /** Nothing for 150 ms, then grey rows.
   * @param {(data: T) => Child[]} draw @returns {Child[]} */
  shown(draw) {
    if (this.data !== undefined) return draw(this.data)
    if (this.trouble) return this.trouble.status === 0 ? [] : [failed(this.trouble)]
    return Date.now() - this.began < 150 ? [] : [grey()]
  }
}

export const grey = () => h('div', { class: 'grey', role: 'status' }, h('span', { class: 'unseen' }, 'Loading'), ...[1, 2, 3, 4].map(() => h('div', { class: 'grey-row' })))

/** @param {Trouble} trouble */
export function failed(trouble, /** @type {() => void} */ again = () => page.arrive(turned?.route)) {
  return h('section', { class: 'card trouble', role: 'alert' },
    h('p', { class: 'bad' }, trouble.message), trouble.help ? h('p', {}, ...command(trouble.help)) : null,
    h('div', { class: 'buttons' }, button('Try again', again),
      button('copy details', () => void navigator.clipboard.writeText(`${trouble.status} ${trouble.code} ${trouble.message} ${trouble.help}`), { class: 'quiet' })))
}

/** @param {string} [words] */
export const empty = (words = SAID.empty) => h('p', { class: 'empty' }, words)

/** Text in which `commands` are set as code.
 * @param {string} text @returns {Child[]} */
export function command(text) {
  return text.split('`').map((part, i) => (i % 2 ? h('code', {}, part) : part))
}

/** @param {string} route @param {Child} text @param {string} [name] */
export const link = (route, text, name) => h('a', { href: '#' + route, class: name }, text)

/** @param {string} text @param {() => void} run @param {{ key?: string, disabled?: boolean, class?: string, label?: string }} more */
export function button(text, run, { key, disabled, class: name, label } = {}) {
  return h('button', { type: 'button', disabled, class: name, 'aria-keyshortcuts': key, 'aria-label': label, on: { click: run } },
    text, key ? h('kbd', { 'aria-hidden': 'true' }, key) : null)
}

/** @param {string} label @param {string} value @param {(string | [string, string])[]} choices @param {(value: string) => void} take */
export function select(label, value, choices, take) {
  return h('label', { class: 'field' }, h('span', {}, label),
    h('select', { value, on: { change: (event) => take(event.target.value) } },
      ...choices.map((choice) => {
        const [one, words] = typeof choice === 'string' ? [choice, choice] : choice
        return h('option', { value: one, selected: one === value }, words)
      })))
}

/** Facts as a list of name and value.
 * @param {[string, Child | Child[]][]} rows */
export function facts(rows) {
  return h('dl', { class: 'facts' }, ...rows.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, ...(Array.isArray(value) ? value : [value]))]))
}

/** @param {string} title @param {Child[]} content @param {Child[]} [beside] @param {string} [name] */
export function card(title, content, beside = [], name = '') {
  return h('section', { class: 'card ' + name, 'aria-label': title }, h('div', { class: 'card-head' }, h('h2', {}, title), ...beside), ...content)
}
