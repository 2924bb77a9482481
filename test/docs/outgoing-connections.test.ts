// SECURITY.md lists every source file that opens a connection, and every key with a destination.
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { configKeys } from '../../src/app/config.js';
import { cells, readDocument, tableRows } from '../support/markdown.js';

/** Calls and imports that open a connection or start a program that could. */
const OPENS = [
  /\bnew (?:Pool|Client|Redis|Cluster|WebSocket)\(/,
  /\b(?:createPools|createConnections|createConnector|createSender|buildConnector|presentedCertificate|fetch)\(|\bcreateProxyMiddleware\b/,
  /import [^;]*\b(?:connect|createConnection|request|get|exec|execFile|fork|spawn)\b[^;]* from 'node:(?:net|tls|https?|http2|child_process)'/,
];

/** Modules that open connections for their callers. */
const MAKERS = ['src/upstream/connections.ts', 'src/upstream/forwarding/forward-request.ts'];

const sources = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', 'src/*.ts'], {
  encoding: 'utf8',
})
  .trim()
  .split('\n');

const rows = tableRows(readDocument('SECURITY.md'), '| to ').map(cells);
const namedIn = (column: number): string[] =>
  rows.flatMap((row) => [...(row[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));

describe('outgoing connections in SECURITY.md', () => {
  test('are listed for every file that opens connections', () => {
    const opening = sources.filter((path) => OPENS.some((opens) => opens.test(readDocument(path))));
    expect([...new Set(namedIn(2))].sort()).toEqual(opening.filter((path) => !MAKERS.includes(path)).sort());
    expect(opening).toEqual(expect.arrayContaining(MAKERS));
  });

  test('are listed for every key that contains an address', () => {
    const keys = configKeys()
      .map(({ key }) => key)
      .filter((key) => /(?:^|\.)(?:url|secondaries|upstreams|endpoint|sentinels|cluster)$/.test(key));
    expect(keys.length).toBeGreaterThan(7);
    expect(namedIn(1)).toEqual(expect.arrayContaining(keys));
  });
});
