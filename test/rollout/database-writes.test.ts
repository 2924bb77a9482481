// Runs the page "I write to the database of the Handle server" with PostgreSQL and with MariaDB.
import '../support/real-sockets.js';
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { startBuiltProxy } from '../support/built-proxy.js';
import { basic, startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { PREFIX } from '../support/leads.js';
import { itWithRoot } from '../support/programs.js';
import { walkThrough } from '../support/walk-through.js';

const demo = await startDemoServer();
const page = exampleText('database-writes.md');
const sqlBlocks = [...page.matchAll(/^```sql\n([^]*?)^```$/gm)].map(([, sql = '']) => sql);
const MYSQL_LINES = /^MySQL and MariaDB need two other lines:\n\n```sh\n[^]*?^```$/m;
const NOBODY = 65_534;

/** Returns the SQL for a Handle server's table, with the columns that the page uses. */
const tableOf = (textType: string): string =>
  `CREATE TABLE handles (handle ${textType} NOT NULL, idx INT NOT NULL, data ${textType}, PRIMARY KEY (handle, idx))`;

interface Database {
  /** Environment variables that make the client connect to this server. */
  variables: Record<string, string>;
  run: (sql: string) => string;
}

/** Creates a folder owned by `nobody`, because the servers refuse to run as root. */
function folderOfNobody(): string {
  const folder = mkdtempSync(join(tmpdir(), 'handle-db-'));
  chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o755);
  return folder;
}

function run(program: string, args: string[], env: Record<string, string> = {}): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', ...env },
  });
  expect(status, `${program} ${args.join(' ')}\n${stderr}`).toBe(0);
  return stdout;
}

function startPostgres(): Database {
  const folder = folderOfNobody();
  const asNobody = (...args: string[]): string => run('runuser', ['-u', 'nobody', '--', ...args]);
  const data = join(folder, 'data');
  asNobody('initdb', '--pgdata', data, '--auth', 'trust', '--username', 'handles');
  const options = `-c unix_socket_directories=${folder} -c listen_addresses= -c port=5432 -c fsync=off`;
  asNobody('pg_ctl', '--pgdata', data, '--options', options, '--log', join(folder, 'log'), '--wait', 'start');
  onTestFinished(() => {
    asNobody('pg_ctl', '--pgdata', data, '--mode', 'immediate', 'stop');
    rmSync(folder, { recursive: true });
  });
  const variables = { PGHOST: folder, PGPORT: '5432', PGUSER: 'handles', PGSERVICEFILE: '/dev/null' };
  run('psql', ['--dbname', 'postgres', '--command', 'CREATE DATABASE handles'], variables);
  const sql = (text: string): string =>
    run('psql', ['--dbname', 'handles', '--set', 'ON_ERROR_STOP=1', '--command', text], variables);
  return { variables, run: sql };
}

async function startMariadb(): Promise<Database> {
  const folder = folderOfNobody();
  const data = `--datadir=${join(folder, 'data')}`;
  const login = '--auth-root-authentication-method=normal';
  run('mariadb-install-db', ['--no-defaults', data, '--user=nobody', login, '--skip-test-db']);
  const socket = join(folder, 'socket');
  const place = ['--no-defaults', data, '--user=nobody', `--socket=${socket}`, `--pid-file=${folder}/pid`];
  const server = spawn('mariadbd', [...place, '--skip-networking'], { stdio: 'ignore' });
  onTestFinished(async () => {
    const exited = new Promise((resolve) => server.once('close', resolve));
    server.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true });
  });
  // User options take precedence over system options, which may name a different server's socket.
  writeFileSync(join(folder, '.my.cnf'), `[client]\nsocket=${socket}\nuser=root\n`);
  const variables = { HOME: folder };
  const socketOfServer = (): string =>
    spawnSync('mysql', ['--skip-column-names', '--execute', 'SELECT @@socket'], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', ...variables },
    }).stdout.trim();
  await expect.poll(socketOfServer).toBe(socket);
  run('mysql', ['--execute', 'CREATE DATABASE handles'], variables);
  return { variables, run: (text) => run('mysql', ['--execute', text, 'handles'], variables) };
}

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
