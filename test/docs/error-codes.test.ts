// The README's table of errors says what the catalogue says, about every code and nothing else.
import { expect, it } from 'vitest';
import { CATALOGUE } from '../../src/errors.js';
import { cells, readme, tableRows } from '../support/markdown.js';

it('lists each error code once, with its status, response code and title', () => {
  const listed = tableRows(readme(), '| code').map(cells);
  const known = Object.entries(CATALOGUE).map(([code, { status, responseCode, title }]) => {
    return [`\`${code}\``, String(status), String(responseCode), `${title}.`];
  });
  expect(listed).toEqual(known);
});
