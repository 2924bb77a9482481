// Imports of the files that a Handle.Net server leaves behind.
import { once } from 'node:events';
import { createWriteStream, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { HandleValue } from '../../src/handle/value.js';
import { builtCli, cli } from '../support/cli.js';
import { useNock } from '../support/nock.js';
import { startProxy } from '../support/proxy.js';
import { fileOf } from '../support/record-files.js';
import { newFolder } from '../support/folder.js';

useNock();

interface SeedRecord {
  handle: string;
  values: HandleValue[];
}

/** Converts a file; returns what the command says and the records that it writes. */
async function convert(text: string | Buffer) {
  const output = join(newFolder(), 'seed.ndjson');
  const ran = await cli(['import', fileOf(text), '--output', output]);
  const names = readdirSync(dirname(output));
  const written = names.length === 0 ? '' : readFileSync(output, 'utf8');
  const records = written
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as SeedRecord);
  return { ...ran, names, records };
}

const urlOf = (url: string, more: object = {}): object => ({
  ...{ index: 1, type: 'URL', data: { format: 'string', value: url }, ttl: 86_400 },
  ...more,
});

/** Formats a record as `hdl-dblist -v` prints it. */
const listed = (handle: string, values: unknown[]): string =>
  `${handle}\n${JSON.stringify(values, undefined, 2)}\n\n`;

const SECRET = {
  ...{ index: 300, type: 'HS_SECKEY', data: { format: 'string', value: 'secret' } },
  ...{ permissions: '1100', ttl: 86_400 },
};

const HEADER = 'handle,idx,type,data,ttl_type,ttl,timestamp,refs,admin_read,admin_write,pub_read,pub_write';
const hex = (text: string): string => `\\x${Buffer.from(text).toString('hex')}`;

describe('the output of hdl-dblist -v', () => {
  const list = listed('21.T1/A', [urlOf('https://example.org/a'), SECRET]) + listed('21.T1/B', []);

  test('becomes a seed without private values', async () => {
    const { code, stdout, stderr, records } = await convert(gzipSync(list));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '1 value left out: not public\n' });
    expect(stdout).toMatch(/^2 records written to .*seed\.ndjson\n$/);
    expect(records).toMatchObject([
      { handle: '21.T1/A', values: [urlOf('https://example.org/a')] },
      { handle: '21.T1/B', values: [] },
    ]);
    expect(records[0]?.values).toHaveLength(1);
  });

  test('is loaded into a running proxy', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: 'none' });
    const server = createServer(proxy.app.admin).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const admin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await cli(['import', fileOf(list), '--admin', admin])).toMatchObject({
      code: 0,
      stdout: '2 imported, 0 skipped\n',
    });
    const text = String((await proxy.ask('/api/handles/21.t1/a')).body);
    expect(JSON.parse(text)).toMatchObject({ responseCode: 1, values: [urlOf('https://example.org/a')] });
    expect(text).not.toContain('secret');
  });

  test('has bad records, which are named by line while the others are kept', async () => {
    const text = `21.T1/A\njava.lang.Exception\n\tat x\n\n21.T1/B\n[\n  {\n    "index": "x"\n  }\n]\n\n${listed('21.T1/C', [urlOf('x')])}21.T1/D\n[\n`;
    const { code, stderr, records } = await convert(text);
    expect(code).toBe(1);
    expect(stderr.split('\n').slice(0, 5)).toEqual([
      'line 2: neither a handle nor its values',
      'line 3: neither a handle nor its values',
      'line 1: no values after this handle; hdl-dblist prints them with -v',
      'line 5: the values of this handle are not JSON of a Handle server',
      'line 25: the file ends in the values of this handle',
    ]);
    expect(records.map(({ handle }) => handle)).toEqual(['21.T1/C']);
  });

  test('without -v has no records', async () => {
    const { code, stderr, names } = await convert('21.T1/A\n21.T1/B\n');
    expect(code).toBe(2);
    expect(stderr).toContain('line 1: no values after this handle; hdl-dblist prints them with -v\n');
    expect(stderr).toContain('has no records');
    expect(names).toEqual([]);
  });
});

describe('a batch file', () => {
  test('becomes the records after all its operations, and no password is printed', async () => {
    const { code, stderr, records } = await convert(
      [
        ...['AUTHENTICATE SECKEY:301:0.NA/21.T1', 'password-of-admin', ''],
        ...['CREATE 21.T1/a', '100 HS_ADMIN 86400 1110 ADMIN 300:111111111100:0.NA/21.T1'],
        ...['300 HS_SECKEY 86400 1100 UTF8 password-of-a', '1 URL 86400 1110 UTF8 https://example.org/a b'],
        ...[
          'create 21.T1/b',
          '1 URL 86400 1110 UTF8 https://example.org/b',
          '2 EMAIL 60 1110 UTF8 x@example.org',
        ],
        ...['', 'CREATE 21.T1/gone', '1 URL 86400 1110 UTF8 https://example.org/gone', ''],
        ...['MODIFY 21.T1/B', '1 URL 86400 1110 UTF8 https://example.org/new', ''],
        ...['ADD 21.T1/b', '400 HS_VLIST 86400 1110 LIST 300:21.T1/USR1; 301:21.T1/USR2;', ''],
        ...['REMOVE 2:21.T1/b', 'DELETE 21.T1/gone', 'HOME 10.0.0.1:2641:TCP', '0.NA/21.T1', ''],
      ].join('\r\n'),
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '1 value left out: not public\n' });
    const references = [
      { handle: '21.T1/USR1', index: 300 },
      { handle: '21.T1/USR2', index: 301 },
    ];
    const admin = { handle: '0.NA/21.T1', index: 300, permissions: '001111111111' };
    expect(records.map(({ handle, values }) => [handle, values])).toEqual([
      [
        '21.T1/a',
        [
          { index: 100, type: 'HS_ADMIN', data: { format: 'admin', value: admin }, ttl: 86_400 },
          urlOf('https://example.org/a b'),
        ],
      ],
      [
        '21.T1/b',
        [
          urlOf('https://example.org/new'),
          { index: 400, type: 'HS_VLIST', data: { format: 'vlist', value: references }, ttl: 86_400 },
        ],
      ],
    ]);
  });

  test('has lines that cannot be used, which are named without their text', async () => {
    const { code, stderr, records } = await convert(
      [
        ...['CREATE', '', 'password', 'CREATE 21.T1/a', '1 URL 86400 1110 UTF8 https://example.org/a'],
        ...['2 HS_SITE 86400 1110 FILE /etc/passwd', '3 URL password', '4 URL 60 1110 LATIN1 password', ''],
        ...['DELETE 21.T1/other', 'REMOVE password', ''],
      ].join('\n'),
    );
    expect(code).toBe(1);
    expect(stderr.replace(/records-?\S*|\/\S+/g, 'FILE')).toBe(
      [
        'line 1: CREATE without a handle',
        'line 3: not an operation',
        'line 6: the data of this value is in another file',
        'line 7: not a value line (index, type, ttl, permissions, kind, data)',
        'line 8: data that is not UTF8, ADMIN or LIST',
        'line 10: DELETE of a handle that the file has not created above',
        'line 11: REMOVE without a handle',
        '7 lines of FILE rejected\n',
      ].join('\n'),
    );
    expect(records).toMatchObject([{ handle: '21.T1/a', values: [urlOf('https://example.org/a')] }]);
  });
});

describe('a file in Latin-1', () => {
  const row = (name: string): string =>
    `21.T1/${name},1,URL,https://example.org/${name},0,86400,0,,1,1,1,0\n`;

  test.each([
    ['hdl-dblist -v', listed('21.T1/ü', [urlOf('https://example.org/ü')]), 2],
    ['a batch file', 'CREATE 21.T1/ü\n1 URL 86400 1110 UTF8 https://example.org/ü\n', 2],
    ['a table', `${HEADER}\n${row('a')}${row('ü')}`, 1],
  ])('of %s is imported, and the lines whose letters are lost are counted', async (_, text, lines) => {
    const { code, stderr, records } = await convert(Buffer.from(text, 'latin1'));
    expect(stderr).toBe(
      `lines that are not UTF-8, or have U+FFFD for a letter: ${lines}; save the file in UTF-8\n`,
    );
    expect(code).toBe(0);
    expect(records.at(-1)?.handle).toBe('21.T1/\uFFFD');
  });
});

describe('the table of an SQL database', () => {
  test('becomes records with the JSON that the Handle server would send', async () => {
    const { code, records } = await convert(
      [
        `\uFEFF${HEADER}`,
        `${hex('21.T1/A')},1,${hex('URL')},${hex('https://example.org/a')},0,60,1600000000,,t,t,t,f`,
        `${hex('21.T1/A')},300,${hex('HS_SECKEY')},${hex('secret')},0,86400,0,,t,t,f,f`,
        '21.T1/B,2,DESC,"a ""b"",',
        'c",1,1800000000,,300:21.T1/%0055SER%00091:x\\\\y,1,1,1,0',
      ].join('\n'),
    );
    expect(code).toBe(0);
    expect(records).toMatchObject([
      {
        handle: '21.T1/A',
        values: [urlOf('https://example.org/a', { ttl: 60, timestamp: '2020-09-13T12:26:40Z' })],
      },
      {
        handle: '21.T1/B',
        values: [
          {
            data: { format: 'string', value: 'a "b",\nc' },
            ttl: '2027-01-15T08:00:00Z',
            references: [
              { handle: '21.T1/USER', index: 300 },
              { handle: 'x\\y', index: 1 },
            ],
          },
        ],
      },
    ]);
  });

  test.each([
    ['too few cells', '21.T1/A,1,URL', 'line 2: not a row with 12 cells'],
    ['no permission', '21.T1/A,1,URL,x,0,60,0,,1,1,?,0', 'line 2: pub_read is neither true nor false'],
    ['a text as index', '21.T1/A,x,URL,x,0,60,0,,1,1,1,0', 'line 2: idx or ttl is not a number of 32 bits'],
    ['a date too far', '21.T1/A,1,URL,x,1,9e15,0,,1,1,1,0', 'line 2: idx or ttl is not a number of 32 bits'],
    ['no handle', ',1,URL,x,0,60,0,,1,1,1,0', 'line 2: not a handle'],
  ])('rejects a row with %s', async (_what, row, message) => {
    const { code, stderr, records } = await convert(`${HEADER}\n${row}\n21.T1/B,1,URL,x,0,60,0,,1,1,1,0\n`);
    expect(code).toBe(1);
    expect(stderr).toContain(`${message}\n1 line of `);
    expect(records).toHaveLength(1);
  });

  test('has no timestamp for a value whose timestamp is no time', async () => {
    const { code, records } = await convert(
      [HEADER, ...['?', '9e15', '1e400'].map((at, n) => `21.T1/A,${n + 1},URL,x,0,60,${at},,1,1,1,0`)].join(
        '\n',
      ),
    );
    expect(code).toBe(0);
    expect(records).toMatchObject([{ values: [{}, {}, {}] }]);
    expect(JSON.stringify(records)).not.toContain('"timestamp"');
  });

  test.each([
    [
      'is not ordered',
      `${HEADER}\nb/1,1,U,x,0,60,0,,1,1,1,0\na/1,1,U,x,0,60,0,,1,1,1,0\n`,
      'line 3 is not in order',
    ],
    ['lacks a column', 'handle,idx,type,data\na/1,1,URL,x\n', 'the table has no column pub_read'],
    ['has an open quote', `${HEADER}\na/1,1,"\nb/1,1\n`, 'line 2: a quote is not closed'],
    ['has no header', `${hex('a/1')},1,URL,x\n`, 'unknown format; give an export'],
  ])('that %s is an error, and no seed is written', async (_what, text, message) => {
    const { code, stderr, names } = await convert(text);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(names).toEqual([]);
  });
});

test('a seed file is compressed if its name says so, and not written where it cannot be', async () => {
  const output = join(newFolder(), 'seed.ndjson.gz');
  const file = fileOf(listed('21.T1/A', [urlOf('x')]));
  expect((await cli(['import', file, '--output', output])).code).toBe(0);
  expect(gunzipSync(readFileSync(output)).toString()).toContain('"handle":"21.T1/A"');
  const failed = await cli(['import', file, '--output', '/proc/seed']);
  expect(failed).toMatchObject({ code: 1 });
  expect(failed.stderr).toMatch(/^cannot write \/proc\/seed: ENOENT/);
});

test('a long file is converted in little memory', async () => {
  const value = urlOf(`https://example.org/${'x'.repeat(600)}`);
  const file = join(newFolder(), 'list');
  const records = 100_000;
  const parts = Array.from({ length: 100 }, (_, part) => part);
  const text = (part: number): string =>
    Array.from({ length: records / 100 }, (_, at) => listed(`21.T1/${part}-${at}`, [value])).join('');
  await pipeline(Readable.from(parts).map(text), createWriteStream(file));
  const output = join(newFolder(), 'seed');
  const ran = await builtCli(['import', file, '--output', output], {
    NODE_OPTIONS: '--max-old-space-size=32',
  });
  expect(ran).toMatchObject({ code: 0, stdout: `${records} records written to ${output}\n` });
}, 120_000);
