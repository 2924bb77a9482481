// The `dev-server` command: an in-memory Handle server for the CI of other programs, with the records of a file.
import { loadConfig } from '../app/config.js';
import { exitOnFailure, stopOnSignal } from '../app/run.js';
import { serve } from '../app/serve.js';
import type { Config } from '../config/schema.js';
import { DEMO_PREFIX, demoRecords } from '../dev-server/seed.js';
import { createDemoServer } from '../dev-server/server.js';
import type { RecordInput } from '../dev-server/store.js';
import { valueFromJson } from '../dev-server/value.js';
import { errorText } from '../errors.js';
import { readFileLines } from '../handle/streams.js';
import { printableText } from '../handle/handle.js';
import { EXIT, Failure, print, printNote } from './terminal.js';

interface DevServerOptions {
  host: string;
  port: number;
  /** File with one record per line. */
  records?: string;
  nativePort?: number;
}

const ANNOUNCEMENT = `Not for production: records are kept in memory only, and the passwords are published.
Log in as 300:${DEMO_PREFIX}/SERVERADMIN with the password "serveradmin" to write any record.`;

/** Serves until SIGINT or SIGTERM. @throws Failure when the file is unreadable or the port is in use */
export async function devServer({ host, port, records: file, nativePort }: DevServerOptions): Promise<void> {
  const given = file === undefined ? {} : await readRecordFile(file).catch(throwFailure);
  const records: Record<string, RecordInput> = { ...demoRecords(Date.now()), ...given };
  const server = createDemoServer({ seed: records, prefixes: ['0.NA', ...prefixesOf(Object.keys(records))] });
  const { url } = await server.listen(port, host).catch((error: unknown) => {
    throw new Failure(`${printableText(errorText(error))}; choose another --port or --host`, EXIT.usage);
  });
  printNote(ANNOUNCEMENT);
  print(`The Handle server is running at ${url}`);
  if (nativePort === undefined) {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void server.close());
    return;
  }
  await exitOnFailure(async () => {
    const config = nativeConfig(host, String(nativePort), url);
    const service = await serve(config);
    stopOnSignal(config, { ...service, stop: (timeoutMs) => service.stop(timeoutMs).then(server.close) });
    const { nativeTcp = 'off', nativeUdp = 'off' } = service.addresses;
    print(`Native protocol: ${nativeTcp}, ${nativeUdp}`);
  });
}

/** Returns the configuration of a proxy for the native protocol that caches nothing, so that writes are visible immediately. */
const nativeConfig = (host: string, port: string, upstreamUrl: string): Config =>
  loadConfig({
    env: {
      ...{ LOG_LEVEL: 'error', HOST: '127.0.0.1', PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: upstreamUrl },
      ...{ NATIVE_HOST: host, NATIVE_TCP_PORT: port, NATIVE_UDP_PORT: port },
      ...{ CACHE_FOUND_MAX_TTL: '0s', CACHE_NOT_FOUND_TTL: '0s', UPSTREAM_RETRY_AFTER: '0s' },
    },
    readFile: () => '',
  });

function throwFailure(error: unknown): never {
  throw new Failure(printableText(errorText(error)));
}

/** @throws Error when the file cannot be read, or with the number of an invalid line */
async function readRecordFile(file: string): Promise<Record<string, RecordInput>> {
  const records = new Map<string, RecordInput>();
  let number = 0;
  for await (const line of readFileLines(file)) {
    number++;
    if (line.trim() === '') continue;
    const record = parseDemoRecord(line);
    if (record === undefined) throw new Error(`line ${number} of ${file} is not a record`);
    records.set(record.handle, record.values);
  }
  return Object.fromEntries(records);
}

function parseDemoRecord(line: string): { handle: string; values: RecordInput } | undefined {
  try {
    const { handle, values } = JSON.parse(line) as { handle?: unknown; values?: unknown };
    if (typeof handle !== 'string' || !/^[^/]+\/./.test(handle) || !Array.isArray(values)) return undefined;
    for (const value of values) valueFromJson(value, 0);
    return { handle, values };
  } catch {
    return undefined;
  }
}

/** Returns the distinct prefixes of handles. A prefix record (`0.NA/<prefix>`) counts for its prefix. */
const prefixesOf = (handles: readonly string[]): string[] => [
  ...new Set(handles.map((handle) => handle.replace(/^0\.NA\//i, '').replace(/\/.*/s, ''))),
];
