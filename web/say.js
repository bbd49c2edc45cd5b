// say.js - what the page tells: a live region for screen readers, and a line at the bottom for all.
import { Trouble } from './api.js'
import { h, render } from './dom.js'
import { SAID } from './words.js'

/** @param {string} id */
const place = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

let timer = 0

/** @param {string} text */
export function announce(text) {
  place('say').textContent = text
}

/** `undo`: what takes it back, offered for as long as the line is there.
 * @param {string} text @param {{ bad?: boolean, help?: string, details?: string, undo?: () => void }} more */
export function tell(text, { bad = false, help = '', details = '', undo } = {}) {
  clearTimeout(timer)
  render(place('told'), h('div', { class: bad ? 'toast trouble' : 'toast' },
    h('span', {}, text), help ? h('span', { class: 'muted' }, help) : null,
    undo ? h('button', { type: 'button', 'aria-keyshortcuts': 'z', on: { click: undo } }, 'undo', h('kbd', { 'aria-hidden': 'true' }, 'z')) : null,
    details ? h('button', { type: 'button', on: { click: () => void navigator.clipboard.writeText(details) } }, 'copy details') : null,
    h('button', { type: 'button', 'aria-label': 'Close this message', on: { click: () => render(place('told')) } }, '×')))
  announce(text + (help ? ' ' + help : ''))
  if (!bad) timer = window.setTimeout(() => render(place('told')), undo ? 10000 : 8000)
}

/** What went wrong, with what to do.
 * @param {unknown} error @param {string} what */
export function tellTrouble(error, what) {
  const trouble = error instanceof Trouble ? error : new Trouble(-1, { detail: String(error) })
  if (trouble.status === 0) tell(`${what}: ${SAID.gone}`, { bad: true, help: 'Start it, and try again.' })
  else if (trouble.status === 409) tell(`${what}: what matches has changed.`, { bad: true, help: 'Look at the list again; nothing was changed.' })
  else tell(`${what}: ${trouble.message}`, { bad: true, help: trouble.help, details: `${trouble.status} ${trouble.code} ${trouble.message} ${trouble.help}` })
}

/** Asks before something that cannot be taken back.
 * @param {string} question @param {string} yes @returns {Promise<boolean>} */
export function confirmed(question, yes) {
  return new Promise((answer) => {
    /** @type {HTMLDialogElement} */
    const dialog = h('dialog', { 'aria-label': question, on: { close: () => { dialog.remove(); answer(dialog.returnValue === 'yes') } } },
      h('p', {}, question),
      h('div', { class: 'buttons' },
        h('button', { type: 'button', on: { click: () => dialog.close('yes') } }, yes),
        h('button', { type: 'button', class: 'quiet', on: { click: () => dialog.close('no') } }, 'Leave it')))
    document.body.append(dialog)
    dialog.showModal()
  })
}
