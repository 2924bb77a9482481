// The README's table of configuration keys says what the schema says, about every key and nothing else.
import { expect, it } from 'vitest';
import { configRows } from '../../src/config/keys.js';
import { cells, readme, tableRows } from '../support/markdown.js';

it('lists each configuration key once, with its variable, default and meaning', () => {
  const listed = tableRows(readme(), '| key').map(cells);
  expect(listed).toEqual(configRows().map(cells));
});
