// `traffic`: prints limited networks and rules, and ends a limit.
import { describe, expect, test } from 'vitest';
import { cli } from '../support/cli.js';
import { startDemoServer } from '../support/demo.js';
import { startOperated } from '../support/operated-proxy.js';

const demo = await startDemoServer();
const ENV = {
  HTTP_TRUSTED_PROXIES: '127.0.0.1',
  TRAFFIC_ENUMERATION_PER_MINUTE: '5',
  TRAFFIC_RULES: JSON.stringify([{ name: 'crawlers', match: { userAgent: '*bot*' }, answer: 403 }]),
};

describe('traffic command', () => {
  test('prints limited networks and rules, and ends an existing limit with --unblock', async () => {
    const { ask, place } = await startOperated(demo.url, ENV);
    await ask('/21.T11998/page', { headers: { 'User-Agent': 'GPTBot' } });
    const headers = { 'X-Forwarded-For': '198.51.100.7' };
    for (let at = 0; at < 6; at++) await ask(`/api/handles/21.T11998/guess-${at}`, { headers });
    expect(await cli(['traffic'], place)).toMatchObject({
      code: 0,
      stdout:
        'Limited networks\n  198.51.100.0/24  until 2026-11-21T10:10:00.000Z, unknown-names\n\n' +
        'Rules (since the start)\n  crawlers  0 matched, 1 limited, 0 shadowed\n',
    });
    const { stdout } = await cli(['traffic', '--json'], place);
    expect(JSON.parse(stdout)).toMatchObject({ blocked: [{ network: '198.51.100.0/24' }] });
    const unblock = ['traffic', '--unblock', '198.51.100.0/24'];
    expect(await cli(unblock, place)).toMatchObject({
      code: 0,
      stdout: 'No longer limited: 198.51.100.0/24\n',
    });
    expect((await cli(['traffic'], place)).stdout).toContain('Limited networks\n  none\n');
    expect(await cli(unblock, place)).toMatchObject({
      code: 1,
      stderr:
        '/traffic/blocked/198.51.100.0%2F24: status 404: This network is not limited: GET /traffic lists limited networks as blocked (ADMIN_NOT_BLOCKED)\n',
    });
  });
});
