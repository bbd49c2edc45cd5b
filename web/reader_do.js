// reader_do.js - what keys and buttons do to messages: to those selected, the opened conversation or the marked row.
import { path, post } from './api.js'
import { pick } from './pick.js'
import { act, allowed, changes } from './reader_act.js'
import { forgetAhead } from './reader_ahead.js'
import { belongs, boxOf, boxesOf, catchUp } from './reader_data.js'
import { onRow } from './reader_mark.js'
import * as notes from './reader_notify.js'
import { keyOf } from './reader_rows.js'
import { list, listed, renewNow } from './reader_source.js'
import { go, inFolder, redraw, shown, talk, where } from './reader_where.js'
import { announce, confirmed, tell, tellTrouble } from './say.js'
import { count, number } from './words.js'

/** @typedef {import('./reader_data.js').Row} Row */
/** @typedef {import('./reader_data.js').Folder} Folder */
/** @typedef {import('./reader_act.js').Verb} Verb */

const ALL_MAX = 1000

list.owner.star = (row) => void doIt(row.starred ? 'unstar' : 'star', [row])

/** Those that no longer belong here leave the list, the others change in their place.
 * @param {Row[]} rows */
export function showRows(rows) {
  forgetAhead(rows)
  notes.know(rows)
  const stays = (/** @type {Row} */ row) => !row.labels.includes('GONE') && (where.q !== '' || belongs(row.labels, where.folder))
  for (const row of rows) {
    list.selected.delete(keyOf(row))
    talk?.replace(row)
    if (stays(row)) list.rows?.replace(row)
  }
  list.rows?.remove(rows.filter((row) => !stays(row)).map(keyOf))
}

/** @param {Verb} verb @param {Row[]} rows @param {string} [label] */
export async function doIt(verb, rows, label) {
  if (rows.length === 0) return
  const leaves = rows.some((row) => row.account === talk?.account && row.id === talk?.id) && ['archive', 'trash', 'spam', 'move', 'delete', 'untrash', 'unspam'].includes(verb)
  const above = rows.filter((row) => (list.rows?.places.get(keyOf(row)) ?? Infinity) < list.place).length
  const place = list.place - above
  const sent = act(verb, rows, { label, show: showRows, back: () => { renewNow(); void talk?.load() } })
  list.find()
  list.settle()
  if (leaves && place < 0) go({ m: '' }) // it was not in this list
  else if (leaves) {
    // What comes after it is read next.
    list.mark(Math.min(place, (list.rows?.total ?? 1) - 1))
    const next = list.rows?.at(list.place) // not the row that a key which waited means: that one has left
    go({ m: next ? keyOf(next) : '' })
  }
  redraw()
  await sent
}

/** Gmail keeps apart what of a conversation is in the trash or in spam.
 * @param {Row | undefined} row */
const apart = (row) => ['TRASH', 'SPAM'].find((one) => row?.labels.includes(one))

/** Of the opened conversation; until it is loaded, what the list has of the opened message.
 * @returns {Row[]} */
function opened() {
  const rows = talk?.rows() ?? []
  const row = list.rows?.at(list.rows.places.get(where.m) ?? -1)
  return rows.some((one) => one.id === talk?.id) || !row ? rows : [row]
}

/** Of an opened conversation all that is where the opened message is and to which it does anything, else what is selected or marked.
 * @param {Verb} verb */
function chosen(verb) {
  const rows = list.selected.size === 0 && talk && !list.meant ? opened() : null
  const here = apart(rows?.find((row) => row.id === talk?.id))
  return (rows?.filter((row) => apart(row) === here && changes(row, verb)) ?? list.chosen()).filter((row) => allowed(row, verb))
}

/** What is selected, the opened conversation, or the marked row: that may have to come first.
 * @param {() => void} run */
const onChosen = (run) => (talk || list.selected.size > 0 ? run() : onMarked(run))

/** @param {() => void} run */
export function onMarked(run) {
  const key = listed
  onRow(list, () => shown && listed === key, run)
}

/** @param {Verb} verb */
export const run = (verb) => onChosen(() => void doIt(verb, chosen(verb)))

export const trash = () => onChosen(() => void trashChosen())

async function trashChosen() {
  if (!inFolder('TRASH')) return doIt('trash', chosen('trash'))
  const rows = chosen('delete')
  if (rows.length > 0 && await confirmed(`Delete ${count(rows.length, 'message')} for ever?`, 'Delete')) await doIt('delete', rows)
}

/** What is kept already is kept no longer. */
export const keep = () => onChosen(() => {
  const rows = chosen('pin')
  if (rows.some((row) => !row.pinned)) void doIt('pin', rows.filter((row) => !row.pinned))
  else void doIt('unpin', chosen('unpin'))
})

/** Whether all that is meant is kept offline. */
export const isKept = () => (list.selected.size === 0 && talk ? chosen('pin').length === 0 && chosen('unpin').length > 0 : list.chosen().length > 0 && list.chosen().every((row) => row.pinned))

export const star = () => onChosen(() => {
  const rows = list.selected.size > 0 || list.meant || !talk ? list.chosen() : opened().filter((row) => row.id === talk?.id)
  void doIt(rows.every((row) => row.starred) ? 'unstar' : 'star', rows)
})

/** @param {'label' | 'move'} verb */
export const choose = (verb) => onChosen(() => chooseLabel(verb))

/** @param {'label' | 'move'} verb */
function chooseLabel(verb) {
  const rows = chosen(verb)
  if (rows.length === 0) return
  const of = new Set(rows.map((row) => row.account))
  if (of.size > 1) {
    tell('These are of several accounts; labels belong to one.', { bad: true })
    return
  }
  const user = boxOf(rows[0].account).folders.filter((one) => one.type === 'user')
  const has = (/** @type {Folder} */ one) => rows.every((row) => row.labels.includes(one.id))
  pick(verb === 'label' ? 'Label' : 'Move to', 'Label', 'A label', user.map((one) => /** @type {[string, () => void]} */ (
    [(verb === 'label' && has(one) ? '✓ ' : '') + one.name, () => void doIt(verb === 'label' && has(one) ? 'unlabel' : verb, rows, one.id)])))
}

/** All of this list, as far as one action reaches. */
export async function selectAll() {
  const { rows } = list
  if (!rows) return
  if (list.selected.size > 0) {
    list.none()
  } else {
    await rows.load(0, ALL_MAX - 1).catch((error) => tellTrouble(error, 'Select'))
    for (let place = 0; place < Math.min(rows.total, ALL_MAX); place++) {
      const row = rows.at(place)
      if (row) list.selected.set(keyOf(row), row)
    }
    if (rows.total > ALL_MAX) tell(`The first ${number(ALL_MAX)} of ${number(rows.total)} are selected.`)
    list.draw()
  }
  redraw()
}

export async function refresh() {
  for (const box of boxesOf(where.who)) {
    if (!where.q) await post(`mail/${path(box.account)}/refresh`, { folder: where.folder }).catch((error) => tellTrouble(error, 'Refresh'))
    void catchUp(box)
  }
  announce('Looking for news.')
}
