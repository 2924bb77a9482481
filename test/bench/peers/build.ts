// Builds a different commit of this proxy in a temporary folder.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { scratchFolder } from '../children.js';
import { OURS } from './peer.js';

export interface Build {
  name: string;
  program: string;
}

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

/** @throws Error for a commit that is unknown or cannot be built */
export function buildCommit(commit: string): Build {
  const id = run('git', [
    'rev-parse',
    '--verify',
    '--short',
    '--end-of-options',
    `${commit}^{commit}`,
  ]).trim();
  // An archive, unlike a worktree, leaves nothing in .git if the bench is killed.
  const folder = scratchFolder();
  run('tar', ['-x', '-C', folder], { input: execFileSync('git', ['archive', id], IN_ROOT) });
  if (lockOf(folder) === lockOf(ROOT)) symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  else run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder });
  run('npm', ['run', 'build'], { cwd: folder });
  const program = join(folder, 'dist', 'main.js');
  if (!existsSync(program)) throw new Error(`npm run build of ${id} makes no dist/main.js`);
  return { name: `${OURS} at ${id}`, program };
}

const lockOf = (folder: string): string => readFileSync(join(folder, 'package-lock.json'), 'utf8');

const IN_ROOT = { cwd: ROOT, maxBuffer: 256 * 1024 ** 2 };

function run(command: string, args: string[], options: { cwd?: string; input?: Buffer } = {}): string {
  return execFileSync(command, args, {
    ...IN_ROOT,
    stdio: ['pipe', 'pipe', 'inherit'],
    ...options,
    encoding: 'utf8',
  });
}
