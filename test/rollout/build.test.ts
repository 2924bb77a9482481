// The build depends on nothing but the sources and the locked packages.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../support/built-proxy.js';

interface Lock {
  packages: Record<string, { dev?: boolean; dependencies?: object; optionalDependencies?: object }>;
}

const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;

/** Returns the folders of the libraries and of the bundler. */
function neededPackages(): string[] {
  const { dependencies, optionalDependencies } = packages['node_modules/rolldown'] ?? {};
  const bundler = ['rolldown', ...Object.keys({ ...dependencies, ...optionalDependencies })];
  return Object.entries(packages)
    .filter(
      ([path, { dev }]) =>
        path !== '' && (dev !== true || bundler.includes(path.replace('node_modules/', ''))),
    )
    .map(([path]) => path)
    .filter((path) => existsSync(join(ROOT, path)));
}

/** Returns the hash of each file that a build writes; `npm pack` adds the types and the list of libraries. */
function hashesOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const paths = files.map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  return Object.fromEntries(
    paths
      .filter((path) => path !== 'sbom.json' && !path.startsWith('types/'))
      .sort()
      .map((path) => [
        path,
        createHash('sha256')
          .update(readFileSync(join(folder, path)))
          .digest('hex'),
      ]),
  );
}

test('two builds are equal byte by byte, also in another folder and without development packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'proxy-build-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const copied = ['package.json', 'tsconfig.json', 'src', 'config', ...neededPackages()];
  // Faster than `cpSync`.
  spawnSync('cp', ['--recursive', '--parents', ...copied, folder], { cwd: ROOT });
  const built = spawnSync(process.execPath, ['config/build.js', 'dist'], { cwd: folder, encoding: 'utf8' });
  expect(built.stderr).toBe('');
  expect(hashesOf(join(folder, 'dist'))).toEqual(hashesOf(join(ROOT, 'dist')));
});
