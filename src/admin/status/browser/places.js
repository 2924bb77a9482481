// Puts words and figures into their places. Only text is ever put in: names of handles come from anybody.

const MOST_ROWS = 10;
const SIGNS = { good: '●', warn: '▲', bad: '■' };

export const place = (id) => document.getElementById(id);

export function put(id, text) {
  const at = place(id);
  if (at.textContent !== text) at.textContent = text;
}

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export function level(at, name) {
  if (name === undefined) delete at.dataset.level;
  else at.dataset.level = name;
}

export function putFigure(id, [number, unit], more) {
  place(id).replaceChildren(number, ...(unit === undefined ? [] : [' ', element('small', unit)]));
  put(`${id}-more`, more);
}

const sign = (name) =>
  element('span', name === undefined ? '' : `${SIGNS[name]} `, { 'aria-hidden': 'true' });

export function putWord(id, judged, more = judged.told) {
  place(id).replaceChildren(sign(judged.level), judged.word);
  level(place(id), judged.level);
  put(`${id}-more`, more);
}

/** Read out when the words change, so it is left alone while they do not. */
export function putState(name, words) {
  const at = place('state');
  if (at.dataset.level === name && at.lastChild?.textContent === words) return;
  level(at, name);
  at.replaceChildren(sign(name), words);
  document.title = `${SIGNS[name]} ${words} – handle-resolver-proxy`;
}

export function putRows(id, rows, nothing) {
  const at = place(id);
  const selection = getSelection();
  // Whoever copies a handle keeps it under the mouse.
  if (!selection.isCollapsed && at.contains(selection.anchorNode)) return;
  at.replaceChildren(
    ...rows.slice(0, MOST_ROWS).map(([first, second]) => {
      const row = element('tr', '');
      row.append(element('td', first), element('td', ''));
      row.lastChild.append(element('bdi', second));
      return row;
    }),
  );
  put(`${id}-more`, rows.length === 0 ? nothing : '');
}
