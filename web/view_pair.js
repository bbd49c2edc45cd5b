// view_pair.js - a browser that is not known yet: its code, and what to do in the terminal.
import { h } from './dom.js'
import { askAgain, live } from './live.js'
import { button } from './page.js'

/** @typedef {import('./dom.js').Child} Child */

/** @returns {Child[]} */
export function drawPairing() {
  const asking = [
    h('p', {}, 'This browser is not known. Run: ', h('code', {}, 'tidemark open')),
    live.code ? h('p', {}, 'Compare this code with your terminal:') : null,
    live.code ? h('p', { class: 'code', 'aria-live': 'polite' }, live.code) : null,
    h('p', { class: 'muted' }, 'Then this browser may use the page for 30 days; ', h('code', {}, 'tidemark token list'), ' shows who may.')]
  const refused = [h('p', { class: 'bad' }, 'The terminal did not let this browser in.'), button('Ask again', askAgain)]
  return [h('section', { class: 'card pair', 'aria-label': 'Let this browser in' },
    live.words ? h('p', { class: 'warn' }, live.words) : null, ...(live.phase === 'refused' ? refused : asking))]
}
