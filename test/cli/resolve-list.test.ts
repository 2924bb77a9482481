// `resolve -`: resolves the handles of standard input in batches.
import request from 'supertest';
import { describe, expect, test } from 'vitest';
import { PLUGINS } from '../../src/app/plugins.js';
import { textValue } from '../../src/dev-server/seed.js';
import type { BatchElement } from '../support/batch.js';
import { cliWith } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';
import { startProxy } from '../support/proxy.js';

const demo = await startDemoServer();
const [DEMO, PAGE] = ['21.T11998/demo', '21.T11998/page'];

const place = async (): Promise<Record<string, string>> => (await startOperated(demo.url)).place;

const elementsIn = (stdout: string): BatchElement[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as BatchElement);

describe('resolve -', () => {
  test('prints one JSON line per handle in list order, and a count', async () => {
    const list = `${DEMO}\n\nhdl:${PAGE}\r\nhttps://hdl.handle.net/21.T11998/demo`;
    const { code, stdout, stderr } = await cliWith(list, ['resolve', '-'], await place());
    expect([code, stderr]).toEqual([0, '3 resolved, 0 failed\n']);
    expect(elementsIn(stdout).map(({ handle, status, body }) => [handle, status, body.responseCode])).toEqual(
      [
        [DEMO, 200, 1],
        [PAGE, 200, 1],
        [DEMO, 200, 1],
      ],
    );
  });

  test('exits with 1 when a handle does not exist, and prints the others', async () => {
    const { code, stdout, stderr } = await cliWith(
      `21.T11998/nobody\n${DEMO}\n`,
      ['resolve', '-'],
      await place(),
    );
    expect([code, stderr]).toEqual([1, '1 resolved, 1 failed\n1 handle failed\n']);
    expect(elementsIn(stdout).map(({ status }) => status)).toEqual([404, 200]);
  });

  test('prints one line per value with --plain, and failures on standard error', async () => {
    demo.put('21.T11998/odd', [textValue(1, 'DESC', 'a\tb')]);
    const list = `21.T11998/odd\n21.T11998/nobody\n${DEMO}\n`;
    const { code, stdout, stderr } = await cliWith(list, ['resolve', '-', '--plain'], await place());
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^21\.T11998\/nobody: 404\n/)]);
    expect(stdout.split('\n').slice(0, 2)).toEqual([
      '21.T11998/odd\t1\tDESC\t86400\ta\\u0009b',
      `${DEMO}\t1\tURL\t86400\thttps://example.org/demo`,
    ]);
  });

  test('sends a list of more than 1,000 handles in several requests', async () => {
    const proxy = await startProxy({ UPSTREAM_URL: demo.url });
    const list = Array.from({ length: 2500 }, (_, at) => (at % 2 === 0 ? DEMO : PAGE));
    const { code, stdout } = await cliWith(list.join('\n'), ['resolve', '-'], { PROXY_URL: proxy.url });
    expect(code).toBe(0);
    expect(elementsIn(stdout).map(({ handle }) => handle)).toEqual(list);
    const { text } = await request(proxy.app.admin).get('/metrics');
    expect(text).toContain('handle_proxy_requests_total{interface="record",result="batch",status="200"} 3');
  });

  test('asks for less at a time when the records of a list are long', async () => {
    demo.put('21.T11998/long', [textValue(1, 'DESC', 'x'.repeat(1_500_000))]);
    const list = Array.from({ length: 48 }, () => '21.T11998/long');
    const { code, stderr } = await cliWith(list.join('\n'), ['resolve', '-'], await place());
    expect([code, stderr]).toEqual([0, '48 resolved, 0 failed\n']);
  });

  test('exits immediately for an empty list', async () => {
    const { code, stdout, stderr } = await cliWith('', ['resolve', '-'], { PROXY_URL: 'http://127.0.0.1:1' });
    expect([code, stdout, stderr]).toEqual([0, '', '0 resolved, 0 failed\n']);
  });

  test('reports a proxy that rejects the batch', async () => {
    const proxy = await startProxy(
      { UPSTREAM_URL: demo.url },
      { plugins: PLUGINS.filter(({ name }) => name !== 'batch') },
    );
    const { code, stderr } = await cliWith(DEMO, ['resolve', '-'], { PROXY_URL: proxy.url });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^status 404: .*Unknown HTTP API endpoint/)]);
  });

  test('rejects --direct as invalid usage, because a Handle server has no batches', async () => {
    const { code, stderr } = await cliWith(DEMO, ['resolve', '-', '--direct', demo.url]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--direct and --native resolve one handle')]);
  });
});
