// Certificates of the servers that plugins send to: no key of the configuration names their authority.
import '../support/real-sockets.js';
import request from 'supertest';
import { expect, test } from 'vitest';
import { createLogger } from '../../src/observe/logger.js';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { startProxy } from '../support/proxy.js';
import { listenTls } from './upstream-loopback.js';

const demo = await startDemoServer();
const REMEDY = 'name the PEM file of its authority in the variable NODE_EXTRA_CA_CERTS';

test.each([
  ['webhook', 'changes cannot be delivered, retrying', 'CHANGES_WEBHOOK_URL'],
  ['cache in front', 'cache in front does not confirm bans, retrying', 'FRONTS_URLS'],
  ['collector', 'trace export failed', 'TRACING_ENDPOINT'],
])(
  'the log names the variable that makes the certificate of a %s trusted',
  async (_server, msg, variable) => {
    const { url } = await listenTls(await createCertificate());
    const lines: Record<string, unknown>[] = [];
    const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
    const logger = createLogger({ level: 'info', destination: { write } });
    const env = { UPSTREAM_URL: demo.url, HTTP_SHARED_MAX_AGE: '1d', [variable]: url };
    const secret = variable === 'CHANGES_WEBHOOK_URL' ? { CHANGES_WEBHOOK_SECRET: 'c'.repeat(44) } : {};
    const proxy = await startProxy({ ...env, ...secret }, { logger });
    await request(proxy.app.admin)
      .post('/purge')
      .send({ handles: ['21.T1/a'] });
    await proxy.ask('/api/handles/21.T11998/DEMO');
    await expect.poll(() => lines.map((line) => line['msg'])).toContain(msg);
    expect(lines.find((line) => line['msg'] === msg)).toMatchObject({ remedy: REMEDY });
  },
);
