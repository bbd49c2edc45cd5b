// view_log.js - the end of the log, which new lines are added to as they are written.  It stays at the
// newest line until a person scrolls up.
import { get } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, button, empty, marksOf, page, select } from './page.js'
import { number, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

const LEVELS = ['debug', 'info', 'warn', 'error']
const HIDDEN = new Set(['time', 'level', 'event', 'run'])
const EVERY_MS = 1000
/** Lines on the page: while it follows, and while a person reads older ones. */
const KEPT = 200
const KEPT_ABOVE = 600

/** @param {any} line */
const details = (line) => Object.entries(line).filter(([name]) => !HIDDEN.has(name)).map(([name, value]) => `${name}=${typeof value === 'number' ? number(value) : value}`).join('  ')

/** @param {{ at: number, line: any }} one @returns {import('./grid.js').Row} */
function row({ at, line }) {
  return {
    key: String(at), label: line.event,
    cells: [[h('span', { class: 'muted' }, time(Date.parse(line.time)) + ':' + line.time.slice(17, 19))],
      [h('span', { class: 'state ' + (line.level === 'error' ? 'bad' : line.level === 'warn' ? 'warn' : 'idle') }, line.level)], [h('b', {}, line.event)],
      [h('span', { class: 'wrap' }, details(line))]],
  }
}

/** @param {URLSearchParams} params */
export function logView(params) {
  const level = params.get('level') ?? 'info'
  const marks = marksOf('log')
  /** @type {{ at: number, line: any }[]} */
  let lines = []
  let read = 0
  let next = ''
  let timer = 0
  let left = false
  let follows = true

  const log = new Loader(async () => {
    const data = await get('log', { level, limit: KEPT, after: next })
    next = data.next
    lines.push(...data.lines.map((/** @type {any} */ line) => ({ at: read++, line })))
    lines = lines.slice(-(follows ? KEPT : KEPT_ABOVE))
    return data
  })
  const ask = async () => {
    clearTimeout(timer)
    if (live.phase === 'live' && !document.hidden) await log.load()
    if (!left) timer = window.setTimeout(() => void ask(), EVERY_MS)
  }
  const box = () => document.querySelector('.tail')
  const toEnd = () => {
    const at = box()
    if (follows && at) at.scrollTop = at.scrollHeight
  }
  const scrolled = () => {
    const at = box()
    const end = at !== null && at.scrollTop + at.clientHeight >= at.scrollHeight - 4
    if (end === follows) return
    follows = end
    page.redraw()
  }

  return {
    title: 'Log', marks, up: '/', load: ask,
    leave: () => { left = true; clearTimeout(timer) },
    /** @returns {Child[]} */
    draw() {
      queueMicrotask(toEnd) // it is drawn then
      return [
        h('div', { class: 'filters' }, select('Level', level, LEVELS, (value) => page.turn('/log?level=' + value)),
          follows ? h('span', { class: 'muted' }, 'New lines appear at the end.') : button('To the newest', () => { follows = true; page.redraw() })),
        ...log.shown(() => lines.length === 0 ? [empty()] : [h('div', { class: 'tail', key: 'tail', on: { scroll: scrolled } },
          grid({ label: 'Log', marks, class: 'log', columns: ['Time', 'Level', 'Event', 'Details'].map((name) => ({ name, class: 'c-' + name.toLowerCase() })), rows: lines.map(row) }))]),
      ]
    },
  }
}
