// Builds the Dockerfile's image with buildah and runs it with runc; both need root but no daemon.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BASE_IMAGE = fileURLToPath(new URL('base-image.sh', import.meta.url));

const execute = promisify(execFile);
/** Runs a program and returns its stdout. Rejects with stdout and stderr if it fails. */
const run = async (program: string, args: string[], cwd = ROOT): Promise<string> =>
  (await execute(program, args, { cwd, maxBuffer: 2 ** 26 })).stdout.trim();

export interface ImageConfig {
  User: string;
  WorkingDir: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  Healthcheck: { Test: string[] };
}

export interface Image {
  config: ImageConfig;
  /** Path of the mounted file system. */
  root: string;
}

/** Builds the image from this machine's files, and removes it when the test ends. */
export async function buildImage(): Promise<Image> {
  const folder = mkdtempSync(join(tmpdir(), 'image-'));
  const storage = [
    '--storage-driver',
    'overlay',
    '--root',
    join(folder, 'store'),
    '--runroot',
    join(folder, 'run'),
  ];
  const buildah = (...args: string[]): Promise<string> => run('buildah', [...storage, ...args]);
  onTestFinished(async () => {
    await buildah('umount', '--all');
    await buildah('rm', '--all');
    rmSync(folder, { recursive: true });
  });
  const [, base = ''] = /^ARG BASE=(\S+)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
  await run(BASE_IMAGE, [`docker.io/library/${base}`, 'buildah', ...storage]);
  // Docker's format supports HEALTHCHECK, unlike the OCI format.
  await buildah('bud', '--isolation', 'chroot', '--pull-never', '--format', 'docker', '--tag', 'built', '.');
  const container = await buildah('from', '--pull-never', 'localhost/built');
  const inspected = JSON.parse(await buildah('inspect', container)) as { Docker: { config: ImageConfig } };
  return { config: inspected.Docker.config, root: await buildah('mount', container) };
}

export interface Container {
  output: () => string;
  /** Runs a command in the container. Rejects if the command fails. */
  execute: (...command: string[]) => Promise<string>;
  /** Sends SIGTERM and resolves with the exit code. */
  stop: () => Promise<number | null>;
}

interface RuntimeConfig {
  root: { path: string; readonly: boolean };
  process: {
    terminal: boolean;
    user: { uid: number; gid: number };
    args: string[];
    env: string[];
    cwd: string;
  };
  linux: { namespaces: { type: string }[] };
}

/** Runs the image read-only with the host network, and kills it when the test ends. */
export async function runImage({ config, root }: Image, env: Record<string, string>): Promise<Container> {
  const folder = mkdtempSync(join(tmpdir(), 'container-'));
  const id = `handle-resolver-proxy-${process.pid}`;
  const runc = (...args: string[]): Promise<string> =>
    run('runc', ['--root', join(folder, 'state'), ...args], folder);
  await runc('spec');
  const file = join(folder, 'config.json');
  const spec = JSON.parse(readFileSync(file, 'utf8')) as RuntimeConfig;
  const [uid = 0, gid = 0] = config.User.split(':').map(Number);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  spec.root = { path: root, readonly: true };
  spec.process.terminal = false;
  spec.process.user = { uid, gid };
  spec.process.args = [...config.Entrypoint, ...config.Cmd];
  spec.process.env = [...config.Env, ...variables];
  spec.process.cwd = config.WorkingDir;
  spec.linux.namespaces = spec.linux.namespaces.filter(({ type }) => type !== 'network');
  writeFileSync(file, JSON.stringify(spec));
  const child = spawn('runc', ['--root', join(folder, 'state'), 'run', id], { cwd: folder });
  const ended = once(child, 'close') as Promise<[number | null]>;
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (output += text.toString()));
  onTestFinished(async () => {
    if (child.exitCode === null) await runc('kill', id, 'KILL');
    await ended;
    rmSync(folder, { recursive: true });
  });
  return {
    output: () => output,
    execute: (...command) => runc('exec', id, ...command),
    async stop() {
      await runc('kill', id, 'TERM');
      return (await ended)[0];
    },
  };
}
