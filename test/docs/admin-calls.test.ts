// The table of config/admin.md has the calls of the admin listener.
import { describe, expect, it } from 'vitest';
import { PLUGINS } from '../../src/app/plugins.js';
import { pathsOf } from '../../src/http/route-table.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

const table = tableRows(readDocument('config/admin.md'), '| call').flatMap((row) =>
  [...(cells(row)[0] ?? '').matchAll(/`(GET|POST|PUT|DELETE) (\/[^ ?`]*)/g)].map(
    ([, method, path = '']) => [method, path] as const,
  ),
);

/** Parts of the pages, which browsers request, and the description of all calls, which stands above the table. */
const OTHERS = ['/favicon.ico', '/status/{file}', '/openapi', '/openapi.json'];

describe('documented admin calls', () => {
  const routes = PLUGINS.flatMap(({ adminRoutes = [] }) => adminRoutes);

  it.each(routes.filter(({ path }) => !OTHERS.includes(path)))('include $method $path', (route) => {
    const [{ pattern } = { pattern: /$^/ }] = pathsOf([route]);
    const isListed = table.some(([method, path]) => method === route.method && pattern.test(path));
    expect(isListed, 'a row in the table of config/admin.md').toBe(true);
  });
});
