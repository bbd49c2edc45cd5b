// theme.js - the theme follows the system, or what was chosen here.

const STORED = 'tidemark.theme'

export const chosenTheme = () => localStorage.getItem(STORED) ?? ''

/** @param {string} theme "", "light" or "dark" */
export function chooseTheme(theme) {
  if (theme) localStorage.setItem(STORED, theme)
  else localStorage.removeItem(STORED)
  applyTheme()
}

export function applyTheme() {
  const theme = chosenTheme()
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  else delete document.documentElement.dataset.theme
}
