// Starts proxies with a snapshot and a log that a test can wait for.
import { expect } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { type Proxy, startProxy } from './proxy.js';
import { type MockUpstream, PATH, mockUpstream } from './upstream.js';

export interface LoggedProxy extends Proxy {
  lines: (msg: string) => Record<string, unknown>[];
  line: (msg: string) => Promise<Record<string, unknown>>;
}

/** Starts a proxy with a log that a test can wait for. */
export async function startLogged(file: string, env: Record<string, string> = {}): Promise<LoggedProxy> {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const logger = createLogger({ level: 'info', destination: { write } });
  const proxy = await startProxy({ CACHE_SNAPSHOT_FILE: file, ...env }, { logger });
  const found = (msg: string) => lines.filter((line) => line['msg'] === msg);
  return {
    ...proxy,
    lines: found,
    line: async (msg) => {
      await expect.poll(() => found(msg)).toHaveLength(1);
      return found(msg)[0] ?? {};
    },
  };
}

/** Writes a snapshot with the records at `paths`, using a temporary proxy. */
export async function snapshotOf(file: string, paths = [PATH]): Promise<MockUpstream> {
  const upstream = mockUpstream();
  const proxy = await startLogged(file);
  for (const path of paths) await proxy.ask(path);
  await proxy.close();
  expect(proxy.lines('snapshot written')).toHaveLength(1);
  return upstream;
}
