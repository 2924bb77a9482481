// Starts database servers until the test ends.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';

const NOBODY = 65_534;

export interface Database {
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

/** Starts PostgreSQL with a database `handles`. */
export function startPostgres(): Database {
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

/** Starts MariaDB with a database `handles`. */
export async function startMariadb(): Promise<Database> {
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
