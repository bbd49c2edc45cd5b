// pick.js - dialogs: a box over the page, and a list from which one is chosen by typing.
import { h, render } from './dom.js'

/** @param {string} label @param {import('./dom.js').Child[]} content */
export function dialog(label, ...content) {
  /** @type {HTMLDialogElement} */
  const box = h('dialog', { 'aria-label': label, on: { close: () => box.remove(), click: (event) => { if (event.target === box) box.close() } } }, ...content)
  document.body.append(box)
  box.showModal()
  return box
}

/** @param {string} label @param {string} field what is typed @param {string} hint @param {[string, () => void][]} all */
export function pick(label, field, hint, all) {
  const list = h('ul', { class: 'commands' })
  const fill = (/** @type {string} */ text) => render(list, ...all.filter(([name]) => name.toLowerCase().includes(text.toLowerCase())).slice(0, 12).map(([name, run]) =>
    h('li', { key: name }, h('button', { type: 'button', class: 'plain', on: { click: () => { box.close(); run() } } }, name))))
  const box = dialog(label, h('label', { class: 'unseen', for: 'command' }, field),
    h('input', { id: 'command', type: 'text', autocomplete: 'off', placeholder: hint, on: {
      input: (event) => fill(event.target.value),
      keydown: (event) => { if (event.key === 'Enter') { const first = list.querySelector('button'); if (first) { event.preventDefault(); first.click() } } },
    } }), list)
  fill('')
}
