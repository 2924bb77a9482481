// The licences of production dependencies must permit redistribution.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const ALLOWED = new Set([
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'BlueOak-1.0.0'],
  ...['Unlicense', 'CC0-1.0'],
]);

interface Lock {
  packages: Record<string, { dev?: boolean; devOptional?: boolean; license?: string }>;
}

const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
const installed = Object.entries(packages).filter(
  ([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true,
);

/** Whether the licence is allowed; one alternative suffices, as in `(MIT OR Apache-2.0)`. */
const isAllowed = (licence: string): boolean =>
  licence
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((one) => ALLOWED.has(one)));

/** Reads the licence from the lock file or the package. */
function licenceOf(path: string, locked: string | undefined): string {
  if (locked !== undefined) return locked;
  const { license } = JSON.parse(readFileSync(`${path}/package.json`, 'utf8')) as { license?: unknown };
  return typeof license === 'string' ? license : 'none';
}

describe('production dependency licences', () => {
  test('allow redistribution', () => {
    expect(installed.length).toBeGreaterThan(10);
    const refused = installed
      .map(
        ([path, { license }]) => [path.replace(/^.*node_modules\//, ''), licenceOf(path, license)] as const,
      )
      .filter(([, licence]) => !isAllowed(licence));
    expect(refused).toEqual([]);
  });
});
