// Charts: a path through the points, with gaps where nothing was measured.
import { joined } from './numbers.js';
import { place, put } from './places.js';

function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

export function draw(id, points, { most = roundUp(1.1 * Math.max(0, ...points)), show, marks = [] }) {
  const svg = place(`${id}-chart`);
  const { width, height } = svg.viewBox.baseVal;
  const x = (at) => ((at * width) / (points.length - 1)).toFixed(1);
  const y = (value) => (height - (value / most) * height).toFixed(1);
  let line = '';
  let area = '';
  points.forEach((value, at) => {
    if (value === null) return;
    const begins = at === 0 || points[at - 1] === null;
    const ends = at === points.length - 1 || points[at + 1] === null;
    line += `${begins ? 'M' : 'L'}${x(at)} ${y(value)}${begins && ends ? 'h.1' : ''}`;
    area += `${begins ? `M${x(at)} ${height}` : ''}L${x(at)} ${y(value)}${ends ? `L${x(at)} ${height}Z` : ''}`;
  });
  svg.querySelector('.line').setAttribute('d', line);
  svg.querySelector('.area').setAttribute('d', area);
  svg
    .querySelector('.marks')
    .setAttribute('d', marks.map((at) => `M${x(at)} ${height}v-${height / 4}`).join(''));
  put(`${id}-top`, joined(show(Number(most.toPrecision(3)))));
}
