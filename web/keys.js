// keys.js - single keys and sequences (`g` then a letter).  They are off in fields, and a switch turns
// them off (WCAG 2.1.4); every one has a visible control.

/** @typedef {Record<string, { words: string, run: () => void }>} Keys */

const OFF = 'tidemark.keys'
const SEQUENCE_MS = 1500

export const enabled = () => localStorage.getItem(OFF) !== 'off'
/** @param {boolean} on */
export const enable = (on) => (on ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, 'off'))

let first = ''
let firstAt = 0

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('select, textarea, input:not([type=checkbox]):not([type=radio])'))
}

/** @param {() => Keys} keys of the page as it is now @param {() => void} commands */
export function listenKeys(keys, commands) {
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      commands()
      return
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector('dialog[open]')) return
    if (event.key === 'Escape' && isField(event.target)) {
      /** @type {HTMLElement} */ (event.target).blur()
      return
    }
    if (!enabled() || isField(event.target)) return
    // A link or button that has the focus is meant by Enter and by the space bar.
    const name = event.key === ' ' ? 'Space' : event.key
    if ((name === 'Enter' || name === 'Space') && event.target instanceof Element && event.target.closest('a, button, input, summary, [role=row]')) return
    const table = keys()
    const sequence = first && Date.now() - firstAt < SEQUENCE_MS ? first + ' ' + name : ''
    first = ''
    const found = (sequence && table[sequence]) || table[name]
    if (found) {
      event.preventDefault()
      found.run()
    } else if (Object.keys(table).some((one) => one.startsWith(name + ' '))) {
      first = name
      firstAt = Date.now()
    }
  })
}
