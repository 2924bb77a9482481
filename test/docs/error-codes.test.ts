// The table of errors in config/troubleshooting.md equals the catalogue.
import { expect, it } from 'vitest';
import { errorRows } from '../../src/errors.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

it('lists each error code once, with its status, response code and title', () => {
  const listed = tableRows(readDocument('config/troubleshooting.md'), '| code').map(cells);
  expect(listed).toEqual(errorRows().map(cells));
});
