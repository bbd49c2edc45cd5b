// app.js - the frame around the views: menu, banner, keys, and where the address leads.
import { alertsView } from './view_alerts.js'
import { offlineSince } from './accounts.js'
import { badView } from './view_bad.js'
import { patterns } from './charts.js'
import { h, render, renderFrom } from './dom.js'
import { homeView } from './view_home.js'
import { jobView, jobsView } from './view_jobs.js'
import { enable, enabled, listenKeys } from './keys.js'
import { schedulesView, settingsView } from './view_lists.js'
import { connect, follow, live } from './live.js'
import { logView } from './view_log.js'
import { messageView, searchView } from './view_mail.js'
import { empty, page } from './page.js'
import { dialog, pick } from './pick.js'
import { drawPairing } from './view_pair.js'
import { announce } from './say.js'
import { accountView, systemView } from './view_system.js'
import { driveView } from './view_drive.js'
import { readerView } from './view_reader.js'
import { assistantView, callView, runView, threadView } from './view_assistant.js'
import { applyTheme } from './theme.js'
import { SAID, clock, count, number, title } from './words.js'

/** @typedef {import('./page.js').View} View */
/** @typedef {import('./keys.js').Keys} Keys */

/** @param {string} id */
const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

/** @type {View} */
let view = { title: '', draw: () => [] }
let route = ''
let loaded = -1
let loadedAt = 0
/** @type {Map<string, number>} */
const scrolled = new Map()
/** Where the window is; asked in the middle of a change it would cost a layout. */
let scrolledTo = 0
window.addEventListener('scroll', () => { scrolledTo = scrollY }, { passive: true })

// ---- where the address leads

/** @param {string} address "/jobs?state=failed" @returns {View} */
function viewOf(address) {
  const [path, query] = address.split('?')
  const parts = path.split('/').filter((part) => part !== '').map(decodeURIComponent)
  const params = new URLSearchParams(query ?? '')
  const [first, second, third] = parts
  switch (first) {
    case undefined: return homeView()
    case 'jobs': return second ? jobView(second) : jobsView(params)
    case 'bad': return badView(params)
    case 'alerts': return alertsView()
    case 'schedules': return schedulesView()
    case 'settings': return settingsView()
    case 'log': return logView(params)
    case 'search': return searchView(params)
    case 'message': if (second && third) return messageView(second, third); else break
    case 'thread': if (second && third) return threadView(second, third); else break
    case 'call': if (second) return callView(second); else break
    case 'run': if (second) return runView(second); else break
    case 'assistant': if (!second) return assistantView(params); else break
    case 'reader': if (live.state?.systems.some((system) => system.name === 'reader')) return readerView(second, third, params); else break
    case 'drive': if (second && third) return driveView(second, third)
  }
  if (live.state && !live.state.systems.some((system) => system.name === first)) return { title: 'Not found', draw: () => [empty()], up: '/' }
  return second ? accountView(first, second) : systemView(first)
}

const address = () => (location.hash.startsWith('#/') ? location.hash.slice(1) : '/')

/** @param {string} route */
const pathOf = (route) => decodeURIComponent(route.split('?')[0])

/** @param {string} [to] */
function arrive(to = address()) {
  if (route) scrolled.set(route, scrolledTo)
  const before = route
  view.leave?.()
  route = to
  view = viewOf(route)
  loaded = -1
  draw()
  void load()
  if (scrolledTo !== (scrolled.get(route) ?? 0)) scrollTo(0, scrolled.get(route) ?? 0)
  if (before === '' || pathOf(before) === pathOf(route)) return
  announce(view.title)
  const row = view.marks && view.marks.at ? document.querySelector('[role=row].marked') : null
  const heading = row ?? document.querySelector('h1')
  if (heading instanceof HTMLElement) heading.focus({ preventScroll: row === null })
}

/** Again when the state has changed, every two seconds at most. */
async function load() {
  if (!view.load || live.phase !== 'live' || loaded === live.version) return
  if (loaded >= 0 && (!view.live || Date.now() - loadedAt < 2000)) {
    if (view.live) setTimeout(() => void load(), 2100)
    return
  }
  loaded = live.version
  loadedAt = Date.now()
  await view.load()
}

// ---- the frame

/** Names of views that belong to no system, with their keys. */
const PLACES = /** @type {[string, string, string][]} */ ([
  ['/jobs', 'Jobs', 'j'], ['/bad', 'Bad', 'b'], ['/alerts', 'Alerts', 'l'], ['/schedules', 'Schedules', 't'], ['/settings', 'Settings', 'e'], ['/log', 'Log', 'o'],
])

/** @returns {[string, string, string][]} */
function places() {
  const taken = new Set(['h', ...PLACES.map(([, , key]) => key)])
  const systems = (live.state?.systems ?? []).map((system) => {
    const key = [...system.name].find((letter) => !taken.has(letter)) ?? ''
    taken.add(key)
    return /** @type {[string, string, string]} */ ([`/${system.name}`, title(system.name), key])
  })
  return [['/', 'Home', 'h'], ...systems, ...PLACES]
}

function drawMenu() {
  const alerts = live.state?.alerts.length ?? 0
  const here = (/** @type {string} */ to) => (to === '/' ? route === '/' : route === to || route.startsWith(to + '/') || route.startsWith(to + '?')) ||
    (to === '/mail' && (route.startsWith('/search') || route.startsWith('/message'))) || (to === '/assistant' && /^\/(thread|call|run)\//.test(route))
  renderFrom(place('menu'), JSON.stringify([pathOf(route), alerts, live.state?.systems]), () => (live.state ? places().map(([to, name, key]) => h('li', { key: to },
    h('a', { href: '#' + to, 'aria-current': here(to) ? 'page' : null, title: key ? `${name} (g ${key})` : name }, name, to === '/alerts' && alerts ? h('b', { class: 'badge' }, number(alerts)) : null))) : []))
}

function drawLive() {
  const words = { starting: 'connecting', asking: 'not paired', refused: 'not paired', live: 'live', gone: 'not connected' }[live.phase]
  render(place('live'), h('span', { class: 'dot ' + live.phase, 'aria-hidden': 'true' }), words)
}

function drawBanner() {
  const off = view.offline?.()
  const since = live.phase === 'live' && live.state ? off?.since ?? offlineSince(live.state.accounts) : null
  render(place('banner'),
    live.phase === 'gone' ? h('p', { class: 'banner bad' }, `${SAID.gone} Start it; this page goes on by itself.`,
      live.state ? h('span', { class: 'muted' }, ` What is shown was true at ${clock(live.since)}.`) : null) : null,
    since !== null ? h('p', { class: 'banner warn' }, `Offline since ${clock(since)}. What is stored here works; ${count(off?.waiting ?? live.state?.jobs.waiting ?? 0, 'action')} wait.`) : null)
}

function drawMain() {
  const main = place('main')
  const unread = view.count?.() ?? 0
  document.title = (unread > 0 ? `(${number(unread)}) ` : '') + (view.title && view.title !== 'Home' ? view.title + ' - ' : '') + 'Tidemark'
  if (live.phase === 'asking' || live.phase === 'refused') {
    render(main, h('h1', { tabindex: -1, key: 'h1' }, 'Tidemark'), ...drawPairing())
    return
  }
  if (!live.state) {
    render(main)
    return
  }
  render(main, h('div', { class: view.title === 'Home' ? 'unseen' : 'title', key: 'title' },
    view.up ? h('a', { class: 'up', href: '#' + view.up, 'aria-label': 'Back', title: 'Back (u)' }, '‹') : null,
    h('h1', { tabindex: -1 }, view.title)), ...view.draw())
}

function draw() {
  drawMenu()
  drawLive()
  drawBanner()
  drawMain()
}

// ---- keys

/** @param {string} key */
const click = (key) => { const at = document.querySelector(key); if (at instanceof HTMLElement) at.focus() }

/** @returns {Keys} */
function keys() {
  /** @type {Keys} */
  const table = {
    '?': { words: 'this list', run: showKeys },
    '/': { words: 'find', run: find },
    '.': { words: 'refresh', run: () => { loaded = -1; void load() } },
    u: { words: 'back', run: () => { if (view.up) page.go(view.up) } },
  }
  for (const [to, name, key] of places()) if (key) table['g ' + key] = { words: name, run: () => page.go(to) }
  if (view.marks) {
    const marks = view.marks
    table.j = { words: 'next', run: () => marks.move(1) }
    table.k = { words: 'previous', run: () => marks.move(-1) }
    table.Enter = { words: 'open', run: () => marks.open() }
  }
  return { ...table, ...view.keys?.() }
}

function find() {
  if (document.querySelector('main input[type=search]')) click('main input[type=search]')
  else if (live.state?.accounts.some((account) => account.system === 'mail')) page.go('/search')
}

function showKeys() {
  const close = h('button', { type: 'button', on: { click: () => box.close() } }, 'Close')
  const box = dialog('Keys', h('h2', {}, 'Keys'),
    h('dl', { class: 'keys' }, ...Object.entries({ ...keys(), 'Ctrl+K': { words: 'commands' } }).flatMap(([key, { words }]) => [h('dt', {}, ...key.split(' ').map((one) => h('kbd', {}, one))), h('dd', {}, words)])),
    h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: enabled(), on: { change: (event) => enable(event.target.checked) } }), 'Single keys'),
    h('div', { class: 'buttons' }, close))
}

function showCommands() {
  if (document.querySelector('dialog[open]') || !live.state) return
  /** @type {[string, () => void][]} */
  const all = [
    ...places().map(([to, name]) => /** @type {[string, () => void]} */ (['Go to ' + name, () => page.go(to)])),
    ...live.state.accounts.map((account) => /** @type {[string, () => void]} */ ([`Go to ${account.system} ${account.account}`, () => page.go(`/${account.system}/${encodeURIComponent(account.account)}`)])),
    ...Object.entries(view.keys?.() ?? {}).map(([, one]) => /** @type {[string, () => void]} */ ([title(one.words), one.run])),
    ['Keys', showKeys],
  ]
  pick('Commands', 'Command', 'A command or a place', all)
}

// ---- start

let said = ''
/** Alerts and the connection are told to who does not see them. */
function tellChanges() {
  const alerts = (live.state?.alerts ?? []).map((alert) => alert.text).join(' ')
  const now = live.phase === 'gone' ? SAID.gone : live.phase === 'live' ? (alerts || 'Live.') : ''
  if (now && now !== said) announce(now)
  said = now || said
}

applyTheme()
document.body.append(patterns())
place('skip').addEventListener('click', (event) => { event.preventDefault(); place('main').focus() })
render(place('tools'),
  h('button', { type: 'button', class: 'plain', 'aria-keyshortcuts': '/', on: { click: find } }, 'Find', h('kbd', { 'aria-hidden': 'true' }, '/')),
  h('button', { type: 'button', class: 'plain', 'aria-keyshortcuts': '?', on: { click: showKeys } }, 'Keys', h('kbd', { 'aria-hidden': 'true' }, '?')))
page.redraw = () => {
  drawBanner()
  drawMain()
}
page.arrive = arrive
window.addEventListener('hashchange', () => arrive())
listenKeys(keys, showCommands)
let known = false
follow(() => {
  if (live.state && !known) {
    known = true
    arrive()
  } else {
    draw()
    void load()
  }
  tellChanges()
})
setInterval(() => { if (!document.hidden && live.phase === 'live') drawMain() }, 1000)
draw()
void connect()
