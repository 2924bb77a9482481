// Runs the page "My Handle server is gone" with the tables of a Handle server in PostgreSQL and in MariaDB.
import '../support/real-sockets.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { type Database, startMariadb, startPostgres } from '../support/databases.js';
import { exampleText } from '../support/examples.js';
import { itWithRoot } from '../support/programs.js';
import { walkThrough } from '../support/walk-through.js';

const page = exampleText('dead-handle-server.md');
const [beforeStart = '', afterStart = ''] = page.split('## 3. Serve it');
const MYSQL_LINES = /^From MySQL[^]*?^```sh\n[^]*?^```$/m;
const POSTGRES_COMMAND = /^psql .*\n/m;

interface Columns {
  bytes: string;
  text: string;
}

/** The tables of the Handle.Net technical manual, section 8. */
const tableOf = ({ bytes, text }: Columns): string =>
  `CREATE TABLE handles (handle ${text} NOT NULL, idx int4 NOT NULL, type ${bytes}, data ${bytes}, ttl_type int2,
    ttl int4, timestamp int4, refs ${bytes === 'bytea' ? 'text' : bytes}, admin_read bool, admin_write bool,
    pub_read bool, pub_write bool, PRIMARY KEY (handle, idx))`;

/** Inserts a handle with a password, one with bytes that are not text, and their values in any order. */
function insertRecords(database: Database, bytes: (given: string | Buffer) => string): void {
  const row = (handle: string, index: number, type: string, data: string, isPublic: boolean): void => {
    const cells = [bytes(handle), index, bytes(type), data, 0, 86_400, 1_600_000_000, "''"];
    database.run(`INSERT INTO handles VALUES (${cells.join(', ')}, true, true, ${String(isPublic)}, false)`);
  };
  row('20.500.12345/XYZ', 2, 'KEY', bytes(Buffer.from('ff000a5c092c22', 'hex')), true);
  row('20.500.12345/ABC', 300, 'HS_SECKEY', bytes('secret'), false);
  row('20.500.12345/ABC', 1, 'URL', bytes('https://example.org/abc'), true);
  row('20.500.12345/XYZ', 1, 'DESC', bytes('Käse, "Brot"'), true);
}

/** Runs the page, and returns the answer for the second handle. */
async function walk(database: Database, text: string): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const SEED = join(folder, 'seed.ndjson.gz');
  expect(await walkThrough(text, { ...database.variables, SEED })).toBe(1);
  const [, yaml = ''] = /^```yaml\n([^]*?)^```$/m.exec(afterStart) ?? [];
  const CONFIG = join(folder, 'proxy.yaml');
  writeFileSync(CONFIG, yaml.replace('/var/lib/handle-resolver-proxy', folder).replaceAll(': 2641', ': 0'));
  const { url } = await startBuiltProxy({ CONFIG });
  expect(await walkThrough(afterStart, { PROXY: url })).toBe(1);
  return (await fetch(`${url}/api/handles/20.500.12345/XYZ`)).json();
}

const SECOND = {
  values: [
    { index: 1, type: 'DESC', data: { format: 'string', value: 'Käse, "Brot"' }, ttl: 86_400 },
    { index: 2, type: 'KEY', data: { format: 'base64', value: '/wAKXAksIg==' }, ttl: 86_400 },
  ],
};

describe('page “My Handle server is gone”', () => {
  itWithRoot(
    ['initdb', 'pg_ctl', 'psql', 'runuser'],
    'serves the records of a PostgreSQL database',
    async () => {
      const database = startPostgres();
      database.run(tableOf({ bytes: 'bytea', text: 'bytea' }));
      insertRecords(database, (given) => `'\\x${Buffer.from(given).toString('hex')}'`);
      expect(await walk(database, beforeStart.replace(MYSQL_LINES, ''))).toMatchObject(SECOND);
    },
    180_000,
  );

  itWithRoot(
    ['mariadb-install-db', 'mariadbd', 'mysql'],
    'serves the records of a MariaDB database',
    async () => {
      const database = await startMariadb();
      database.run(tableOf({ bytes: 'blob', text: 'varchar(255)' }));
      insertRecords(database, (given) => `x'${Buffer.from(given).toString('hex')}'`);
      expect(await walk(database, beforeStart.replace(POSTGRES_COMMAND, ''))).toMatchObject(SECOND);
    },
    180_000,
  );
});
