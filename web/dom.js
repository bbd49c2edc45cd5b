// dom.js - builds elements and patches them in place.  Text is always text: markup is never made
// from a string, so the policy of the page (Trusted Types) has nothing to forbid.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, (event: any) => void>} Handlers */
/** @typedef {string | number | boolean | null | undefined | Handlers} Prop */
/** What an element carries for patching: its key among its siblings, and its handlers.
 * @typedef {{ $key?: string, $on?: Handlers }} Extra */

const SVG = 'http://www.w3.org/2000/svg'

/** @param {Event} event */
function dispatch(event) {
  const on = /** @type {Extra} */ (event.currentTarget).$on
  on?.[event.type]?.(event)
}

/** @param {Element} element @param {Handlers} on */
function listen(element, on) {
  const before = /** @type {Extra} */ (element).$on ?? {}
  for (const type of Object.keys(on)) if (!(type in before)) element.addEventListener(type, dispatch)
  const extra = /** @type {Extra} */ (element)
  extra.$on = { ...Object.fromEntries(Object.keys(before).map((type) => [type, () => {}])), ...on }
}

/** @template {Element} T @param {T} element @param {Record<string, Prop>} props @param {Child[]} children @returns {T} */
function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'key') /** @type {Extra} */ (element).$key = String(value)
    else if (name === 'on') listen(element, /** @type {Handlers} */ (value))
    else if (name === 'value' && 'value' in element) Object.assign(element, { value })
    else if (name === 'checked') Object.assign(element, { checked: value })
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...nodes(children))
  return element
}

/** @param {Child[]} children @returns {Node[]} */
function nodes(children) {
  /** @type {Node[]} */
  const list = []
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === '') continue
    list.push(child instanceof Node ? child : document.createTextNode(String(child)))
  }
  return list
}

/** An element of HTML.  `key` names it among its siblings, `on` has its handlers.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {Record<string, Prop>} [props] @param {...Child} children @returns {HTMLElementTagNameMap[K]} */
export function h(name, props = {}, ...children) {
  return fill(document.createElement(name), props, children)
}

/** The same of SVG.
 * @param {string} name @param {Record<string, Prop>} [props] @param {...Child} children */
export function s(name, props = {}, ...children) {
  return fill(document.createElementNS(SVG, name), props, children)
}

/** @param {Node} old @param {Node} fresh */
function same(old, fresh) {
  return old.nodeName === fresh.nodeName && /** @type {Extra} */ (old).$key === /** @type {Extra} */ (fresh).$key
}

/** Set by a person who opens details, and by what measures a frame; never by `h`. */
const NOT_OURS = new Set(['open', 'style'])

/** @param {Element} old @param {Element} fresh */
function patchAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) if (!NOT_OURS.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name)
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
}

/** What a person types or chooses is theirs until the field loses the focus.
 * @param {Element} old @param {Element} fresh */
function patchField(old, fresh) {
  if (old === document.activeElement) return
  if (old instanceof HTMLInputElement && fresh instanceof HTMLInputElement) {
    if (old.value !== fresh.value) old.value = fresh.value
    if (old.checked !== fresh.checked) old.checked = fresh.checked
  } else if (old instanceof HTMLSelectElement && fresh instanceof HTMLSelectElement) {
    if (old.value !== fresh.value) old.value = fresh.value
  }
}

/** @param {Node} old @param {Node} fresh */
function patch(old, fresh) {
  if (old === fresh) return // it takes care of itself
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue
    return
  }
  if (!(old instanceof Element) || !(fresh instanceof Element)) return
  patchAttributes(old, fresh)
  const on = /** @type {Extra} */ (fresh).$on
  if (on || /** @type {Extra} */ (old).$on) listen(old, on ?? {})
  reconcile(old, [...fresh.childNodes])
  patchField(old, fresh)
}

/** @param {Element} parent @param {Node[]} fresh */
function reconcile(parent, fresh) {
  /** @type {Map<string, Node>} */
  const keyed = new Map()
  for (const child of parent.childNodes) {
    const key = /** @type {Extra} */ (child).$key
    if (key !== undefined) keyed.set(key, child)
  }
  /** @type {Node | null} */
  let at = parent.firstChild
  for (const node of fresh) {
    const key = /** @type {Extra} */ (node).$key
    const old = key === undefined ? at : keyed.get(key)
    if (!old || !same(old, node)) {
      parent.insertBefore(node, at)
      continue
    }
    if (old === at) at = at.nextSibling
    else parent.insertBefore(old, at)
    patch(old, node)
  }
  while (at) {
    const next = at.nextSibling
    parent.removeChild(at)
    at = next
  }
}

/** What each element was last drawn from.
 * @type {WeakMap<Element, string>} */
const drawn = new WeakMap()

/** Draws the content of an element again if `state` has changed: all that it depends on, as text.
 * @param {Element} parent @param {string} state @param {() => Child[]} draw */
export function renderFrom(parent, state, draw) {
  if (drawn.get(parent) === state) return
  drawn.set(parent, state)
  render(parent, ...draw())
}

/** Runs something once the browser has shown what was changed; in a hidden window, which shows nothing, a moment later.
 * @param {() => void} run */
export function afterPaint(run) {
  let due = true
  const once = () => {
    if (!due) return
    due = false
    run()
  }
  requestAnimationFrame(() => setTimeout(once))
  setTimeout(once, 100)
}

/** Makes `children` the content of `parent`.  Elements that are still there stay the same ones, and
 * so does the focus.
 * @param {Element} parent @param {...Child} children */
export function render(parent, ...children) {
  const focused = document.activeElement
  reconcile(parent, nodes(children))
  // Moving an element takes the focus from it.
  if (focused instanceof HTMLElement && focused !== document.activeElement && parent.contains(focused)) focused.focus()
}
