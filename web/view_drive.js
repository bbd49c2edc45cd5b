// view_drive.js - the drives of an account, and one drive in full: what runs now, what waits for a person, what is owed and
// why, last changes.
import { acceptOwed, decideDeletions, resolveConflict, setMode, syncDrive } from './act.js'
import { get, path } from './api.js'
import { h } from './dom.js'
import { Loader, button, card, command, empty, facts, link, select } from './page.js'
import { confirmed } from './say.js'
import { ago, count, number, size, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./live.js').Account} Account */

const SHOWN = 50
const MODES = ['two-way', 'download-only', 'upload-only']

const changeWords = /** @type {Record<string, string>} */ ({
  upload: 'uploaded', upload_new: 'uploaded', download: 'downloaded', make_folder_online: 'folder made online', make_folder_here: 'folder made here',
  move_online: 'moved online', move_here: 'moved here', delete_online: 'deleted online', delete_here: 'deleted here',
})

const kindWords = /** @type {Record<string, string>} */ ({
  edit_edit: 'was edited on both sides: both are kept', create_create: 'was created on both sides: both are kept',
  edit_delete: 'was changed on one side and deleted on the other: kept', move_delete: 'was moved here and deleted online: kept',
  delete_move: 'was moved online and deleted here: kept', type: 'is a file on one side and a folder on the other: both are kept',
  move_move: 'was moved on both sides: the place online is used', name_clash: 'has a name that another one has: renamed',
  hard_link_parted: 'was a hard link: new content came from OneDrive, for this name alone',
})

/** What a drive does now: "downloading 3 files (2.1 GB), 12 waiting".
 * @param {any} one */
function driveNow(one) {
  const parts = []
  for (const [name, side] of [['downloading', one.downloading], ['uploading', one.uploading]])
    if (side.files > 0) parts.push(`${name} ${count(side.files, 'file')} (${size(side.bytes)})`)
  if (one.other_changes > 0) parts.push(count(one.other_changes, 'other change'))
  if (one.waiting > 0) parts.push(`${number(one.waiting)} waiting`)
  return parts.length > 0 ? parts.join(', ') : one.looking ? 'looking for changes' : 'nothing'
}

/** @param {any} one @returns {[string, Child | Child[]][]} */
function driveFacts(one) {
  return [
    ['Folder', one.dir], ['Now', driveNow(one)], ['Tidemark', one.tidemark_unix_ms ? time(one.tidemark_unix_ms) : 'none yet'],
    ['Synced', `${count(one.files, 'file')} (${size(one.bytes)}) in ${count(one.folders, 'folder')}`],
  ]
}

/** What needs a person, as links to where it is decided.
 * @param {any} one */
function driveNeeds(one) {
  return [
    one.mounted ? '' : 'its folder is not mounted', one.conflicts > 0 ? count(one.conflicts, 'conflict') : '', one.owed_count > 0 ? `${number(one.owed_count)} owed` : '',
    one.deletions_waiting > 0 ? `${count(one.deletions_waiting, 'deletion')} wait for you` : '',
  ].filter((words) => words !== '').join(', ')
}

/** @param {any} one */
const address = (one) => `/drive/${path(one.account, one.drive)}`

/** @param {any} status of `drive status` @param {Account} account @returns {Child[]} */
export function drivePanels(status, account) {
  const drives = (status?.drives ?? []).filter((/** @type {any} */ one) => one.account === account.account)
  if (drives.length === 0) return [card('Drives', [h('p', { class: 'empty' }, 'No drive yet. Run: ', h('code', {}, 'tidemark drive add DIR'))])]
  return drives.map((/** @type {any} */ one) => card(one.drive, [
    facts([...driveFacts(one), ['Mode', one.mode]]), driveNeeds(one) ? h('p', { class: 'warn' }, driveNeeds(one) + '.') : null,
  ], [link(address(one), `open ${one.drive}`)]))
}

// ---- one drive

/** @param {string[]} names @param {Child[][]} rows */
function driveTable(names, rows) {
  return h('table', { class: 'drive-table' }, h('thead', {}, h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...rows.slice(0, SHOWN).map((cells, at) => h('tr', { key: String(at) }, ...cells.map((cell) => h('td', {}, cell))))))
}

/** @param {number} many */
const rest = (many) => (many > SHOWN ? h('p', { class: 'muted' }, `and ${number(many - SHOWN)} more.`) : null)

/** @param {string} text */
const code = (text) => h('code', { class: 'wrap' }, text)

/** @param {any} one @param {any[]} list @param {() => void} again */
function conflictCard(one, list, again) {
  const keep = (/** @type {any} */ item, /** @type {string} */ which, /** @type {string} */ words) =>
    button(words, () => void resolveConflict(one.drive, item.id, which).then(again), { class: 'quiet', label: `${words}: ${item.path}` })
  const row = (/** @type {any} */ item) => h('li', { key: String(item.id) },
    h('p', {}, code(item.path), ` ${kindWords[item.kind] ?? 'was decided'}`, item.copy ? ': ' : '.', item.copy ? code(item.copy) : null,
      h('span', { class: 'muted' }, ` ${ago(item.at_unix_ms)}`)),
    h('div', { class: 'buttons' }, ...(item.copy
      ? [keep(item, 'both', 'Keep both'), keep(item, 'local', 'Keep mine'), keep(item, 'remote', 'Keep theirs')]
      : [keep(item, 'both', 'Dismiss')])))
  return card('Conflicts and notices', [list.length === 0 ? empty('None.') : h('ul', { class: 'decisions' }, ...list.slice(0, SHOWN).map(row)), rest(list.length)])
}

/** What is decided is what is shown: the number of the list goes with it.
 * @param {any} one @param {any} waiting @param {() => void} again */
function deletionCard(one, waiting, again) {
  const list = waiting?.deletions ?? []
  if (list.length === 0) return null
  const decide = async (/** @type {'accept' | 'restore'} */ what) => {
    if (what === 'accept' && !(await confirmed(`Delete ${count(list.length, 'item')} of ${one.drive}? They go to the trash here, and to the recycle bin online.`, 'Delete them'))) return
    await decideDeletions(one.drive, what, waiting.listed, list.length)
    again()
  }
  return card('Deletions that wait for you', [
    h('p', {}, `${count(list.length, 'item')} would be deleted. Everything else goes on.`),
    driveTable(['Delete', 'Path'], list.map((/** @type {any} */ item) => [item.delete, code(item.path)])), rest(list.length),
    h('div', { class: 'buttons' }, button(`Delete ${number(list.length)}`, () => void decide('accept')), button('Bring them back', () => void decide('restore'), { class: 'quiet' })),
  ], [], 'why')
}

/** @param {any} one @param {() => void} again */
function owedCard(one, again) {
  const misfit = (/** @type {any} */ item) => item.action === 'download' && /hash|size|fit/i.test(item.error)
  return card('Owed', [one.owed.length === 0 ? empty('Nothing is owed.') : driveTable(['Path', 'Why', 'Tries', 'Next try'], one.owed.map((/** @type {any} */ item) => [
    code(item.path), h('span', {}, item.error, misfit(item) ? button('Take it as it is', () => void acceptOwed(one.drive, item.path).then(again), { class: 'quiet', label: 'Take it as it is: ' + item.path }) : null),
    number(item.attempts), time(item.next_unix_ms)])), rest(one.owed.length)])
}

/** @param {string} account @param {string} name */
export function driveView(account, name) {
  const about = new Loader(async () => {
    const [status, conflicts, waiting] = await Promise.all([get(`drive/${path(name)}/status`), get(`drive/${path(name)}/conflicts`), get(`drive/${path(name)}/deletions`)])
    return { one: status.drives[0], conflicts: conflicts.conflicts, waiting: waiting.drives[0] }
  })
  const again = () => void about.load()
  const mode = async (/** @type {string} */ to) => {
    if (await confirmed(`Make ${name} ${to}? What the mode forbids is held back, and crosses when it is allowed again.`, `Make it ${to}`)) await setMode(name, to)
    again()
  }
  return {
    title: `Drive / ${name}`, up: `/drive/${path(account)}`, live: true, load: () => about.load(),
    keys: () => ({ s: { words: 'sync', run: () => void syncDrive(name).then(again) } }),
    draw: () => about.shown(({ one, conflicts, waiting }) => [
      h('div', { class: 'bar-line' }, h('span', { class: 'state ' + (driveNeeds(one) ? 'warn' : one.looking || one.waiting > 0 ? 'busy' : 'ok') }, driveNeeds(one) || driveNow(one).replace('nothing', 'up to date')),
        button('Sync', () => void syncDrive(name).then(again), { key: 's' }), select('Mode', one.mode, MODES, (to) => void mode(to))),
      one.trouble ? h('p', { class: 'words bad' }, ...command(`Stopped: ${one.trouble}. Mount it, or put the folder back where it was. Nothing is deleted meanwhile.`)) : null,
      deletionCard(one, waiting, again),
      h('div', { class: 'columns' },
        card('Now', [facts(driveFacts(one))]), conflictCard(one, conflicts, again), owedCard(one, again),
        card('Last changes', [one.last_changes.length === 0 ? empty('None yet.') : driveTable(['What', 'Name', 'Size', 'When'], one.last_changes.map((/** @type {any} */ item) =>
          [changeWords[item.action] ?? item.action, code(item.name), item.bytes ? size(item.bytes) : '', ago(item.at_unix_ms)]))]),
        card('Not synced', [one.skipped.length === 0 ? empty('Everything is synced.') : driveTable(['Path', 'Where', 'Why'], one.skipped.map((/** @type {any} */ item) =>
          [code(item.path), item.side, item.reason])), rest(one.skipped.length)])),
    ]),
  }
}
