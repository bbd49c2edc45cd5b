// view_home.js - a row for each account, worst first; what needs a person; what runs.
import { accountRow, standing, worstFirst } from './accounts.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live, named, timeLeft } from './live.js'
import { card, link, marksOf, page } from './page.js'
import { count, duration, number, sentence, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./live.js').State} State */

/** What the reader does stands in a row of its own, beside the account's.
 * @param {import('./live.js').Account} account */
const isReader = (account) => account.system === 'reader'

/** @param {import('./live.js').Account} account @returns {import('./grid.js').Row} */
function readerRow(account) {
  const route = `/reader/${encodeURIComponent(account.account)}`
  const level = account.jobs_failed > 0 ? 'bad' : account.now === 'running' ? 'busy' : account.now === 'idle' ? 'ok' : 'warn'
  return {
    key: named(account), open: () => page.go(route), class: 'account ' + level,
    label: `Reader ${account.account}, ${account.words}`,
    cells: [[
      h('div', { class: 'account-name' }, h('span', { class: 'state ' + level }, account.now.replace('_', ' ')), h('span', { class: 'system' }, 'reader'), link(route, account.account, 'name')),
      h('div', { class: 'account-facts' }, h('span', {}, account.words ?? ''),
        account.jobs_failed > 0 ? link(`/jobs?state=failed&account=${encodeURIComponent(account.account)}`, `${number(account.jobs_failed)} failed`, 'bad') : null),
    ]],
  }
}

/** Is all safe, and what happens now.
 * @param {State} state @returns {[string, string]} */
function summary(state) {
  const stored = state.accounts.filter((account) => !isReader(account))
  const levels = stored.map((account) => standing(account).level)
  const needs = levels.filter((level) => level === 'bad').length
  if (needs > 0) return ['bad', `${count(needs, 'account')} ${needs === 1 ? 'needs' : 'need'} you.`]
  const busy = stored.filter((account) => account.now === 'running')
  if (busy.length > 0) {
    const left = busy.map(timeLeft)
    const known = left.every((one) => one !== null) ? Math.max(.../** @type {number[]} */ (left)) : null
    return ['busy', `Working on ${count(busy.length, 'account')}` + (known === null ? '.' : `, done in ${duration(known)}.`)]
  }
  if (state.alerts.length > 0) return ['warn', `Nothing runs; ${count(state.alerts.length, 'alert')}.`]
  if (levels.includes('warn')) return ['warn', 'All that can be stored is stored.']
  return stored.every((account) => account.tidemark) ? ['ok', 'All is stored and up to date.'] : ['warn', 'Nothing runs now.']
}

/** @param {State} state */
export function alertStrip(state) {
  return state.alerts.length === 0 ? null : h('ul', { class: 'alerts', 'aria-label': 'Alerts' },
    ...state.alerts.map((alert) => h('li', { key: alert.condition + alert.account, class: alert.level === 'critical' ? 'bad' : 'warn' },
      h('span', { class: 'state ' + (alert.level === 'critical' ? 'bad' : 'warn') }, alert.level),
      h('span', {}, (alert.account ? alert.account + ': ' : '') + sentence(alert.text)), link('/alerts', 'why'))))
}

/** @param {State} state */
function lanes(state) {
  const one = (/** @type {string} */ route, /** @type {string} */ name, /** @type {number} */ value, bad = false) =>
    h('a', { class: 'lane' + (bad && value > 0 ? ' bad' : ''), href: '#' + route }, h('b', {}, number(value)), ' ' + name)
  return h('div', { class: 'lanes' },
    ...Object.entries(state.lanes ?? {}).map(([name, lane]) => one('/jobs?state=running', `${name} running`, lane.running)),
    one('/jobs?state=pending', 'waiting', state.jobs.waiting), one('/jobs?state=pending', 'blocked', state.jobs.blocked),
    one('/jobs?state=pending', 'delayed', state.jobs.delayed), one('/jobs?state=failed', 'failed', state.jobs.failed, true))
}

export function homeView() {
  const marks = marksOf('home')
  return {
    title: 'Home', marks,
    /** @returns {Child[]} */
    draw() {
      const state = live.state
      if (!state) return []
      if (state.accounts.length === 0) {
        return [h('section', { class: 'card first' }, h('p', {}, 'No account yet. Run: ', h('code', {}, 'tidemark account add gmail you@example.com')))]
      }
      const [level, words] = summary(state)
      return [
        h('p', { class: 'summary ' + level }, words, h('span', { class: 'muted' }, ` ${time(Date.now())}`)),
        alertStrip(state),
        grid({ label: 'Accounts', columns: [{ name: 'Account', hidden: true }], rows: [...worstFirst(state.accounts.filter((one) => !isReader(one))).map(accountRow), ...state.accounts.filter(isReader).map(readerRow)], marks, class: 'accounts' }),
        card('Lanes', [lanes(state)], [], 'lanes-card'),
      ]
    },
  }
}
