// Draws a chart as an SVG path, with gaps for missing points.
import { element, putText } from './dom.js';
import { joined } from './format.js';

function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

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
