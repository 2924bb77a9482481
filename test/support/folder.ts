// A temporary folder for a test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** Creates a folder, and removes it when the test ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    // Again if a snapshot is written to it meanwhile.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  return folder;
}
