// The table of errors in src/errors.md equals the catalogue.
import { expect, it } from 'vitest';
import { errorRows } from '../../src/errors.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

it('lists each error code once, with its status, response code and title', () => {
  const listed = tableRows(readDocument('src/errors.md'), '| code').map(cells);
  expect(listed).toEqual(errorRows().map(cells));
});
