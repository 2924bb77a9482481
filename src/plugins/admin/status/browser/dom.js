// Puts text, figures and charts into elements by id. Never writes HTML, because clients choose the names of handles.
import { joined } from './format.js';

const MAX_ROWS = 10;
const SIGNS = { good: '●', warn: '▲', bad: '■' };

export const element = (id) => document.getElementById(id);

export function putText(id, text) {
  const target = element(id);
  if (target.textContent !== text) target.textContent = text;
}

function create(name, text, attributes = {}) {
  const created = document.createElement(name);
  created.textContent = text;
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

export function setLevel(target, level) {
  if (level === undefined) delete target.dataset.level;
  else target.dataset.level = level;
}

export function putFigure(id, [number, unit], more) {
  element(id).replaceChildren(number, ...(unit === undefined ? [] : [' ', create('small', unit)]));
  putText(`${id}-more`, more);
}

const sign = (level) =>
  create('span', level === undefined ? '' : `${SIGNS[level]} `, { 'aria-hidden': 'true' });

export function putHealth(id, { level, word, detail }, more = detail) {
  element(id).replaceChildren(sign(level), word);
  setLevel(element(id), level);
  putText(`${id}-more`, more);
}

/** Skips unchanged text, because screen readers announce every change to the element. */
export function putState(level, text) {
  const target = element('state');
  if (target.dataset.level === level && target.lastChild?.textContent === text) return;
  setLevel(target, level);
  target.replaceChildren(sign(level), text);
  document.title = `${SIGNS[level]} ${text} – handle-resolver-proxy`;
}

export function putRows(id, rows, empty) {
  const target = element(id);
  const selection = getSelection();
  // Replacing rows would clear a selection that the user is about to copy.
  if (!selection.isCollapsed && target.contains(selection.anchorNode)) return;
  target.replaceChildren(
    ...rows.slice(0, MAX_ROWS).map(([first, second]) => {
      const row = create('tr', '');
      row.append(create('td', first), create('td', ''));
      row.lastChild.append(create('bdi', second, { dir: 'ltr' }));
      return row;
    }),
  );
  putText(`${id}-more`, rows.length === 0 ? empty : '');
}

function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

/** Draws a chart as an SVG path, with gaps for missing points. */
export function draw(id, points, { max = roundUp(1.1 * Math.max(0, ...points)), format, marks = [] }) {
  const svg = element(`${id}-chart`);
  const { width, height } = svg.viewBox.baseVal;
  const x = (at) => ((at * width) / (points.length - 1)).toFixed(1);
  const y = (value) => (height - (value / max) * height).toFixed(1);
  let line = '';
  let area = '';
  points.forEach((value, at) => {
    if (value === null) return;
    const isFirst = at === 0 || points[at - 1] === null;
    const isLast = at === points.length - 1 || points[at + 1] === null;
    line += `${isFirst ? 'M' : 'L'}${x(at)} ${y(value)}${isFirst && isLast ? 'h.1' : ''}`;
    area += `${isFirst ? `M${x(at)} ${height}` : ''}L${x(at)} ${y(value)}${isLast ? `L${x(at)} ${height}Z` : ''}`;
  });
  svg.querySelector('.line').setAttribute('d', line);
  svg.querySelector('.area').setAttribute('d', area);
  svg
    .querySelector('.marks')
    .setAttribute('d', marks.map((at) => `M${x(at)} ${height}v-${height / 4}`).join(''));
  putText(`${id}-top`, joined(format(Number(max.toPrecision(3)))));
}
