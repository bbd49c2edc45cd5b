// view_lists.js - schedules and settings.
import { runSchedule } from './act.js'
import { get } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { enable, enabled } from './keys.js'
import { Loader, button, card, command, empty, marksOf, page, select } from './page.js'
import { chosenTheme, chooseTheme } from './theme.js'
import { ago, duration, sentence, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

/** @param {string[]} names */
const columns = (...names) => names.map((name) => ({ name, class: 'c-' + name.toLowerCase().replaceAll(' ', '-') }))

/** @param {any} one */
function lastRun(one) {
  if (one.last === 'never') return ['idle', 'never']
  if (one.last === 'running') return ['busy', 'running']
  return one.exit_code === 0 ? ['ok', 'done'] : ['bad', one.last === 'done' || one.last === 'failed' ? `failed (${one.exit_code})` : one.last]
}

export function schedulesView() {
  const marks = marksOf('schedules')
  const list = new Loader(() => get('schedules'))
  const run = async (/** @type {string} */ name) => {
    await runSchedule(name)
    await list.load()
  }
  return {
    title: 'Schedules', marks, up: '/', live: true, load: () => list.load(),
    keys: () => ({ r: { words: 'run now', run: () => { if (marks.chosen()[0]) void run(marks.chosen()[0]) } } }),
    draw: () => list.shown((data) => [
      data.schedules.length === 0 ? empty('Nothing is scheduled.') : grid({ label: 'Schedules', marks, class: 'schedules',
        columns: columns('Name', 'Command', 'When', 'Next', 'Last', 'Result', 'Run'),
        rows: data.schedules.map((/** @type {any} */ one) => {
          const [level, word] = lastRun(one)
          return {
            key: one.name, label: `schedule ${one.name}, ${word}`,
            cells: [[h('b', {}, one.name)], [h('code', {}, one.command.join(' '))], [one.at + (one.jitter_ms ? `, ± ${duration(one.jitter_ms)}` : '')], [time(one.next_unix_ms)],
              [one.ended_unix_ms ? ago(one.ended_unix_ms) : one.started_unix_ms ? ago(one.started_unix_ms) : '-'],
              [h('span', { class: 'state ' + level }, word), ' ', h('span', { class: 'muted' }, one.result)],
              [button('Run now', () => void run(one.name), { class: 'quiet', label: 'Run now: ' + one.name })]],
          }
        }) }),
      card('Add one', [h('p', {}, 'In the terminal, for example:'),
        ...(data.can ?? []).map((/** @type {any} */ one) => h('p', { key: one.command }, h('code', {}, `tidemark schedule add --at "${one.at}" ${one.needs ? '-- ' : ''}${one.command}${one.needs ? ' … --' + one.needs : ''}`), h('span', { class: 'muted' }, ' ' + one.words)))]),
    ]),
  }
}

export function settingsView() {
  const marks = marksOf('settings')
  const list = new Loader(() => get('settings'))
  let words = ''
  let changedOnly = false
  const fits = (/** @type {any} */ one) => (!changedOnly || one.layer !== 'default') && (one.name + ' ' + one.meaning).toLowerCase().includes(words.toLowerCase())
  return {
    title: 'Settings', marks, up: '/', load: () => list.load(),
    /** @returns {Child[]} */
    draw() {
      const marked = (list.data?.settings ?? []).find((/** @type {any} */ one) => one.name === marks.at)
      return [
        card('This browser', [h('div', { class: 'filters' },
          select('Theme', chosenTheme(), [['', 'as the system'], 'light', 'dark'], (theme) => { chooseTheme(theme); page.redraw() }),
          h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: enabled(), on: { change: (event) => { enable(event.target.checked); page.redraw() } } }), 'Single keys'))]),
        h('div', { class: 'filters' },
          h('label', { class: 'field' }, h('span', {}, 'Find'), h('input', { type: 'search', value: words, on: { input: (event) => { words = event.target.value; page.redraw() } } })),
          h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: changedOnly, on: { change: (event) => { changedOnly = event.target.checked; page.redraw() } } }), 'only those that are set')),
        h('p', { class: 'muted' }, 'Settings are changed in the terminal: ', h('code', {}, marked ? `tidemark config set ${marked.name} ${marked.value === '' ? 'VALUE' : marked.value}` : 'tidemark config set NAME VALUE')),
        ...list.shown((data) => {
          const rows = data.settings.filter(fits)
          return rows.length === 0 ? [empty()] : [grid({ label: 'Settings', marks, total: rows.length, class: 'settings', columns: columns('Name', 'Value', 'Origin', 'Meaning'),
            rows: rows.map((/** @type {any} */ one) => ({ key: one.name, label: one.name, open: () => marks.go(one.name),
              cells: [[h('code', {}, one.name)], [h('b', {}, one.value === '' ? '-' : String(one.value))],
                [h('span', { class: one.layer === 'default' ? 'muted' : 'state busy' }, one.origin)], [...command(sentence(one.meaning)), one.live ? '' : h('span', { class: 'muted' }, ' Needs a restart.')]] })) })]
        }),
      ]
    },
  }
}
