// view_alerts.js - conditions that need a person: since when, what it means, what cures it.
import { get, path } from './api.js'
import { h } from './dom.js'
import { grid } from './grid.js'
import { live } from './live.js'
import { Loader, card, command, empty, link, marksOf, page } from './page.js'
import { ago, sentence, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */

/** Where the cure is; the command says it for the terminal.
 * @param {import('./live.js').Alert} alert @returns {[string, string]} */
function cure(alert) {
  const account = alert.account ? 'account=' + encodeURIComponent(alert.account) : ''
  if (alert.command.includes(' bad list')) return ['/bad?' + account, 'bad items']
  if (alert.command.includes(' drive ')) return [alert.account ? '/drive/' + path(alert.account) : '/drive', 'drives']
  if (alert.command.includes(' jobs ')) return ['/jobs?' + account, 'jobs']
  return ['/', 'accounts']
}

/** @param {import('./live.js').Alert} alert @param {number} [cleared] @returns {import('./grid.js').Row} */
function alertRow(alert, cleared) {
  const [route, words] = cure(alert)
  return {
    key: alert.condition + '/' + (alert.account ?? '') + (cleared ?? ''), label: `${cleared ? 'cleared' : alert.level} ${alert.condition}`, open: () => page.go(route),
    cells: [[h('span', { class: 'state ' + (cleared ? 'ok' : alert.level === 'critical' ? 'bad' : 'warn') }, cleared ? 'cleared' : alert.level)],
      [h('div', {}, h('b', {}, sentence(alert.text))), cleared ? null : h('div', { class: 'muted' }, alert.means + ' ' + alert.to_do)],
      [alert.account ?? '-'], [cleared ? `cleared ${ago(cleared)}` : `since ${time(alert.since_unix_ms)}`],
      cleared ? [] : [link(route, words), ' ', h('code', {}, alert.command)]],
  }
}

const COLUMNS = ['Level', 'What', 'Account', 'Since', 'Cure'].map((name) => ({ name, class: 'c-' + name.toLowerCase() }))

/** From where on something is an alert, and who said so.
 * @param {any[]} settings */
function thresholds(settings) {
  const rows = settings.filter((one) => one.name.startsWith('alerts.') && !one.name.startsWith('alerts.mail.'))
  return card('Thresholds', [h('table', { class: 'thresholds' },
    h('thead', {}, h('tr', {}, ...['Setting', 'Value', 'Origin', 'Meaning'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...rows.map((one) => h('tr', { key: one.name }, h('td', {}, h('code', {}, one.name)), h('td', {}, h('b', {}, one.value === '' ? '-' : String(one.value))),
      h('td', {}, one.origin), h('td', {}, ...command(sentence(one.meaning)))))))], [link('/settings', 'settings')])
}

export function alertsView() {
  const marks = marksOf('alerts')
  const settings = new Loader(() => get('settings'))
  return {
    title: 'Alerts', marks, up: '/', live: true, load: () => settings.load(),
    /** @returns {Child[]} */
    draw() {
      if (!live.state) return []
      const rows = live.state.alerts.map((alert) => alertRow(alert))
      return [
        rows.length === 0 ? h('p', { class: 'summary ok' }, 'No alert.') : grid({ label: 'Active alerts', columns: COLUMNS, rows, marks, class: 'alert-list' }),
        live.cleared.length === 0 ? null : card('Cleared while this page was open', [
          grid({ label: 'Cleared alerts', columns: COLUMNS, rows: live.cleared.map((alert) => alertRow(alert, alert.cleared)), marks: marksOf('cleared'), class: 'alert-list' })]),
        rows.length + live.cleared.length === 0 ? empty('An alert appears here, on Home and as the first line of every command.') : null,
        ...settings.shown((data) => [thresholds(data.settings)]),
      ]
    },
  }
}
