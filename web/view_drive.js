// view_drive.js - the drives of an account: what runs now, what is owed and why, conflicts, last changes.
import { h } from './dom.js'
import { card, empty, facts } from './page.js'
import { ago, count, number, size, time } from './words.js'

/** @typedef {import('./dom.js').Child} Child */
/** @typedef {import('./live.js').Account} Account */

const changeWords = /** @type {Record<string, string>} */ ({
  upload: 'uploaded', upload_new: 'uploaded', download: 'downloaded', make_folder_online: 'folder made online', make_folder_here: 'folder made here',
  move_online: 'moved online', move_here: 'moved here', delete_online: 'deleted online', delete_here: 'deleted here',
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

/** @param {string[]} names @param {Child[][]} rows */
function driveTable(names, rows) {
  return h('table', {}, h('thead', {}, h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, ...rows.map((cells, at) => h('tr', { key: String(at) }, ...cells.map((cell) => h('td', {}, cell))))))
}

/** @param {any} one of `drive status` @returns {Child[]} */
function drivePanel(one) {
  /** @type {Child[]} */
  const body = [facts([
    ['Folder', one.mounted ? one.dir : `${one.dir} is not mounted, or is another one: the drive stops`],
    ['Mode', one.mode], ['Tidemark', one.tidemark_unix_ms ? time(one.tidemark_unix_ms) : 'none yet'],
    ['Synced', `${count(one.files, 'file')} (${size(one.bytes)}) in ${count(one.folders, 'folder')}`],
    ['Now', driveNow(one)],
    ...(one.deletions_waiting > 0 ? /** @type {[string, string][]} */ ([['Deletions', `${number(one.deletions_waiting)} wait for consent: tidemark drive deletions list ${one.drive}`]]) : []),
    ...(one.skipped.length > 0 ? /** @type {[string, string][]} */ ([['Not synced', one.skipped.slice(0, 5).map((/** @type {any} */ item) => item.path).join(', ') + (one.skipped.length > 5 ? ' …' : '')]]) : []),
  ])]
  if (one.owed.length > 0)
    body.push(h('h3', {}, 'Owed'), driveTable(['Path', 'Why', 'Next try'], one.owed.slice(0, 20).map((/** @type {any} */ item) => [h('code', {}, item.path), item.error, time(item.next_unix_ms)])))
  if (one.conflict_list.length > 0)
    body.push(h('h3', {}, 'Conflicts'), driveTable(['Path', 'Copy', 'When'], one.conflict_list.slice(0, 20).map((/** @type {any} */ item) => [h('code', {}, item.path), h('code', {}, item.copy || '-'), ago(item.at_unix_ms)])))
  body.push(h('h3', {}, 'Last changes'), one.last_changes.length === 0 ? empty('None yet.')
    : driveTable(['What', 'Name', 'Size', 'When'], one.last_changes.map((/** @type {any} */ item) => [changeWords[item.action] ?? item.action, h('code', {}, item.name), item.bytes ? size(item.bytes) : '', ago(item.at_unix_ms)])))
  return [card(one.drive, body)]
}

/** @param {any} status of `drive status` @param {Account} account @returns {Child[]} */
export function drivePanels(status, account) {
  const drives = (status?.drives ?? []).filter((/** @type {any} */ one) => one.account === account.account)
  if (drives.length === 0) return [card('Drives', [h('p', { class: 'empty' }, 'No drive yet. Run: ', h('code', {}, 'tidemark drive add DIR'))])]
  return drives.flatMap(drivePanel)
}
