// The table of keys in config/README.md equals the schema.
import { expect, it } from 'vitest';
import { configRows } from '../../src/config/keys.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

it('lists each configuration key once, with its variable, default and description', () => {
  const listed = tableRows(readDocument('config/README.md'), '| key').map(cells);
  expect(listed).toEqual(configRows().map(cells));
});
