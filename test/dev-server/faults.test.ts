// Demo server faults on demand, each as a real upstream may fail.
import { afterEach, describe, expect, it } from 'vitest';
import { startDemoServer } from '../support/demo.js';

const server = await startDemoServer();
const ask = (options: RequestInit = {}): Promise<Response> =>
  fetch(`${server.url}/api/handles/21.T11998/page`, options);
/** Time to wait for bytes that must not arrive. */
const WAIT_MS = 150;

afterEach(() => {
  server.heal();
});

describe('demo server with a fault', () => {
  it.each([
    ['refuse', 503, '{"responseCode":3,"message":"Server too busy"}'],
    ['error', 500, '{"responseCode":2,"message":"Internal Error"}'],
    ['garbage', 200, '{"responseCode":1,"handle":"21.T11998/'],
  ] as const)('returns the configured status and body (%s)', async (kind, status, body) => {
    server.fail(kind);
    const response = await ask();
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(body);
  });

  it('sends a page instead of JSON (html)', async () => {
    server.fail('html');
    const response = await ask();
    expect(response.headers.get('content-type')).toBe('text/html;charset=utf-8');
  });

  it('sends the record of a different handle (wrong-handle)', async () => {
    server.fail('wrong-handle');
    expect(await (await ask()).json()).toMatchObject({ responseCode: 1, handle: '21.T11998/somebody-else' });
  });

  it('resets the connection (reset)', async () => {
    server.fail('reset');
    await expect(ask()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
  });

  it('truncates the response body (cut)', async () => {
    server.fail('cut');
    const response = await ask();
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
  });

  it('stalls in the middle of the response body (stall)', async () => {
    server.fail('stall');
    const controller = new AbortController();
    const response = await ask({ signal: controller.signal });
    setTimeout(() => {
      controller.abort();
    }, WAIT_MS);
    await expect(response.text()).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('never sends a response (hang)', async () => {
    server.reset();
    server.fail('hang');
    const controller = new AbortController();
    const asking = ask({ signal: controller.signal });
    // If aborted before it arrives, the request could arrive during the next test.
    await expect.poll(() => server.asked).toBe(1);
    controller.abort();
    await expect(asking).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('counts the requests that it fails', async () => {
    server.reset();
    server.fail('refuse');
    await ask();
    expect(server.asked).toBe(1);
  });

  it('fails only a given number of requests', async () => {
    server.fail('refuse', { times: 1 });
    expect((await ask()).status).toBe(503);
    expect((await ask()).status).toBe(200);
  });

  it('responds normally again after heal()', async () => {
    server.fail('refuse');
    server.heal();
    expect((await ask()).status).toBe(200);
  });
});
