// Runs the page "I write to the database of the Handle server" with PostgreSQL and with MariaDB.
import '../support/real-sockets.js';
import { describe, expect } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { type Database, startMariadb, startPostgres } from '../support/databases.js';
import { basic, startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { PREFIX } from '../support/leads.js';
import { itWithRoot } from '../support/programs.js';
import { walkThrough } from '../support/walk-through.js';

const demo = await startDemoServer();
const page = exampleText('database-writes.md');
const sqlBlocks = [...page.matchAll(/^```sql\n([^]*?)^```$/gm)].map(([, sql = '']) => sql);
const MYSQL_LINES = /^MySQL and MariaDB need two other lines:\n\n```sh\n[^]*?^```$/m;

/** Returns the SQL for a Handle server's table, with the columns that the page uses. */
const tableOf = (textType: string): string =>
  `CREATE TABLE handles (handle ${textType} NOT NULL, idx INT NOT NULL, data ${textType}, PRIMARY KEY (handle, idx))`;

/** Changes a record at the Handle server, bypassing the proxy. */
async function changeAtServer(suffix: string, url: string): Promise<void> {
  const { status } = await fetch(`${demo.url}/api/handles/${PREFIX}/${suffix}?index=1`, {
    method: 'PUT',
    headers: { Authorization: basic(`300:${PREFIX}/USER01`, 'password'), 'Content-Type': 'application/json' },
    body: JSON.stringify([{ index: 1, type: 'URL', data: url }]),
  });
  expect(status).toBe(200);
}

/** Inserts two handles, one with shell and SQL syntax in its name, and runs the commands of the page. */
async function walk(database: Database, text: string, quoted: (name: string) => string): Promise<void> {
  const proxy = await startBuiltProxy({ UPSTREAM_URL: demo.url });
  const read = async (): Promise<string> =>
    (await fetch(`${proxy.url}/api/handles/${PREFIX}/page?type=URL`)).text();
  await changeAtServer('page', 'https://example.org/before');
  expect(await read()).toContain('/before');
  const insert = (name: string): string =>
    database.run(`INSERT INTO handles VALUES (${quoted(name)}, 1, ${quoted('x')})`);
  insert(`${PREFIX}/page`);
  insert(`${PREFIX}/a|b "c"\n1); DROP TABLE handles; --`);
  await changeAtServer('page', 'https://example.org/after');
  expect(await read()).toContain('/before');
  expect(await walkThrough(text, { ...database.variables, ADMIN_URL: proxy.adminUrl })).toBe(1);
  expect(await read()).toContain('/after');
  expect(database.run('SELECT count(*) FROM handles')).toContain('2');
}

describe('page “I write to the database of the Handle server”', () => {
  itWithRoot(
    ['initdb', 'pg_ctl', 'psql', 'runuser', 'jq'],
    'purges the handles recorded by a PostgreSQL trigger',
    async () => {
      const database = startPostgres();
      database.run(tableOf('bytea'));
      database.run(sqlBlocks[0] ?? '');
      const quoted = (name: string): string => `'\\x${Buffer.from(name).toString('hex')}'`;
      await walk(database, page.replace(MYSQL_LINES, ''), quoted);
    },
    180_000,
  );

  itWithRoot(
    ['mariadb-install-db', 'mariadbd', 'mysql', 'jq'],
    'purges the handles recorded by a MariaDB trigger',
    async () => {
      const database = await startMariadb();
      database.run(tableOf('VARCHAR(255)'));
      database.run(sqlBlocks[1] ?? '');
      const quoted = (name: string): string => `x'${Buffer.from(name).toString('hex')}'`;
      await walk(database, page, quoted);
    },
    180_000,
  );
});
