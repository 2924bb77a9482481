// The error table in config/troubleshooting.md matches the catalogue.
import { describe, expect, it } from 'vitest';
import { allErrors } from '../../src/app/plugins.js';
import { errorRows } from '../../src/errors.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

describe('documented error codes', () => {
  it('include each code once, with its status, response code and title', () => {
    const listed = tableRows(readDocument('config/troubleshooting.md'), '| code').map(cells);
    expect(listed).toEqual(errorRows(allErrors()).map(cells));
  });
});
