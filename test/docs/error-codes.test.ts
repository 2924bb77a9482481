// The error table in config/troubleshooting.md matches the catalogue.
import { describe, expect, it } from 'vitest';
import { allErrors } from '../../src/app/plugins.js';
import type { ErrorEntry } from '../../src/errors.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

const { errorRows } = (await import(new URL('../../config/table-rows.js', import.meta.url).href)) as {
  errorRows: (errors: readonly ErrorEntry[]) => string[];
};

describe('documented error codes', () => {
  it('include each code once, with its status, response code and title', () => {
    const listed = tableRows(readDocument('config/troubleshooting.md'), '| code').map(cells);
    expect(listed).toEqual(errorRows(allErrors()).map(cells));
  });
});
