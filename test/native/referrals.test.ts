// Native resolution under prefixes without a configured server, with `upstream.followReferrals`.
import { describe, expect, test } from 'vitest';
import { OP_FLAG } from '../../src/plugins/native/codec.js';
import { textValue } from '../../src/dev-server/seed.js';
import { startDemoServer } from '../support/demo.js';
import { type FixedValues, fixed } from '../support/fixed.js';
import { PUBLIC, askNative, codeOf, indexesIn, textIn } from '../support/native-messages.js';
import { startProxy } from '../support/proxy.js';
import { portOf, siteOf } from '../support/site-values.js';

const page = [textValue(1, 'URL', 'https://example.org/')];

const near = await startDemoServer({ prefixes: ['21.T1'], seed: { '21.T1/page': page } });
const far = await startDemoServer({ prefixes: ['99.FAR'], seed: { '99.FAR/page': page } });
const root = await startDemoServer({
  prefixes: ['0.NA'],
  seed: {
    '0.NA/99.FAR': [siteOf(far)],
    // The server `far` is not responsible for this prefix.
    '0.NA/99.MOVED': [siteOf(far)],
    '0.NA/99.NATIVE': [siteOf(far, { protocols: ['TCP'] })],
    '0.NA/99.LOOP': [textValue(1, 'HS_SERV', '0.NA/99.LOOP')],
  },
});

async function start(env: Record<string, string> = {}, constants: FixedValues['upstream'] = {}) {
  for (const server of [near, far, root]) server.reset();
  return startProxy({
    UPSTREAMS: JSON.stringify([
      { prefixes: ['21.T1'], url: near.url },
      { prefixes: ['0.NA'], url: root.url, readOnly: true },
    ]),
    UPSTREAM_FOLLOW_REFERRALS: 'true',
    ...fixed({
      upstream: {
        referralsToPrivateNetworks: true,
        referralPorts: [near, far, root].map(portOf),
        ...constants,
      },
    }),
    ...env,
  });
}

describe('native resolution with referrals', () => {
  describe('to a referred server', () => {
    test('returns a record, and caches it for all interfaces', async () => {
      const { app, ask } = await start();
      expect(indexesIn(await askNative(app.native, '99.FAR/page'))).toEqual([1]);
      expect(indexesIn(await askNative(app.native, '99.far/PAGE', { transport: 'udp' }))).toEqual([1]);
      expect((await ask('/api/handles/99.FAR/page')).status).toBe(200);
      expect([far.askedFor('99.FAR/page'), root.askedFor('0.NA/99.FAR'), near.asked]).toEqual([1, 1, 0]);
    });

    test('returns code 100 for an unknown handle, and caches the response', async () => {
      const { app } = await start();
      for (let times = 0; times < 2; times++) {
        expect(codeOf(await askNative(app.native, '99.FAR/none'))).toBe(100);
      }
      expect(far.askedFor('99.FAR/none')).toBe(1);
    });

    test('returns code 301 and the text of the server when it is not responsible', async () => {
      const { app } = await start();
      const answer = await askNative(app.native, '99.MOVED/page');
      expect([codeOf(answer), textIn(answer)]).toEqual([301, "That prefix doesn't live here"]);
      expect(far.askedFor('99.MOVED/page')).toBe(1);
    });

    test('returns code 200 when a filter matches nothing', async () => {
      const { app } = await start();
      expect(codeOf(await askNative(app.native, '99.FAR/page', { types: ['EMAIL'] }))).toBe(200);
    });

    test('reloads a record when the AUTH flag is set', async () => {
      const { app } = await start();
      await askNative(app.native, '99.FAR/page');
      const flags = PUBLIC | OP_FLAG.authoritative;
      expect(indexesIn(await askNative(app.native, '99.FAR/page', { flags }))).toEqual([1]);
      expect(far.askedFor('99.FAR/page')).toBe(2);
    });
  });

  test('returns code 100 for a prefix without a record', async () => {
    const { app } = await start();
    expect(codeOf(await askNative(app.native, '99.NOBODY/page'))).toBe(100);
    expect(far.asked).toBe(0);
  });

  test.each(['99.NATIVE', '99.LOOP'])(
    'returns code 2 for %s, which refers to no HTTP server, so that the client uses a different site',
    async (prefix) => {
      const { app } = await start();
      expect(codeOf(await askNative(app.native, `${prefix}/page`))).toBe(2);
    },
  );

  test('returns code 301 for a foreign prefix when upstream.followReferrals is false', async () => {
    const { app } = await start({ UPSTREAM_FOLLOW_REFERRALS: 'false' });
    const answer = await askNative(app.native, '99.FAR/page');
    expect([codeOf(answer), textIn(answer)]).toEqual([301, "That prefix doesn't live here"]);
    expect([far.asked, root.asked]).toEqual([0, 0]);
  });

  describe('without the RECU flag', () => {
    const flags = PUBLIC & ~OP_FLAG.recursive;

    test('returns code 301 for a foreign prefix unless the record is cached', async () => {
      const { app } = await start();
      expect(codeOf(await askNative(app.native, '99.FAR/page', { flags }))).toBe(301);
      expect([far.asked, root.asked]).toEqual([0, 0]);
      await askNative(app.native, '99.FAR/page');
      expect(indexesIn(await askNative(app.native, '99.FAR/page', { flags }))).toEqual([1]);
    });

    test('returns code 301 when private values are requested', async () => {
      const { app } = await start();
      const asked = { flags: flags & ~OP_FLAG.publicOnly, indexes: [1] };
      expect(codeOf(await askNative(app.native, '99.FAR/page', asked))).toBe(301);
      expect(far.asked).toBe(0);
    });

    test('returns the response from the default server', async () => {
      const { app } = await start(
        { UPSTREAMS: JSON.stringify([{ prefixes: '*', url: near.url }]) },
        { referralRoot: root.url },
      );
      expect(codeOf(await askNative(app.native, '99.FAR/page', { flags }))).toBe(301);
      expect(far.asked).toBe(0);
      expect(codeOf(await askNative(app.native, '99.FAR/page'))).toBe(1);
    });

    test('returns a record from a configured server', async () => {
      const { app } = await start();
      expect(indexesIn(await askNative(app.native, '21.T1/page', { flags }))).toEqual([1]);
      expect(codeOf(await askNative(app.native, '21.T1/none', { flags }))).toBe(100);
      expect([near.askedFor('21.T1/page'), near.askedFor('21.T1/none')]).toEqual([1, 1]);
    });

    test('shares its load with other non-recursive requests (single flight)', async () => {
      const { app } = await start();
      const ask = () => askNative(app.native, '21.T1/page', { flags });
      const answers = await Promise.all(Array.from({ length: 20 }, ask));
      expect(answers.map(codeOf)).toEqual(Array.from({ length: 20 }, () => 1));
      expect(near.asked).toBe(1);
    });

    test('shares the load of all readers when referrals are disabled', async () => {
      const { app, ask } = await start({ UPSTREAM_FOLLOW_REFERRALS: 'false' });
      await Promise.all([
        askNative(app.native, '21.T1/page', { flags }),
        askNative(app.native, '21.T1/page'),
        ask('/api/handles/21.T1/page'),
      ]);
      expect(near.asked).toBe(1);
    });

    test('shares no load with recursive requests', async () => {
      const { app } = await start();
      const ask = (options = {}) => askNative(app.native, '99.FAR/page', options);
      const answers = await Promise.all([ask({ flags }), ask(), ask({ flags }), ask()]);
      expect(answers.map(codeOf)).toEqual([301, 1, 301, 1]);
      expect(far.asked).toBe(1);
    });

    test('returns a stale entry while the Handle server hangs', async () => {
      const { app, pass } = await start({ UPSTREAM_STALE_AFTER: '50ms' });
      await askNative(app.native, '21.T1/page', { flags });
      pass(2 * 3_600_000);
      near.fail('hang', { times: 1 });
      expect(indexesIn(await askNative(app.native, '21.T1/page', { flags }))).toEqual([1]);
      await expect.poll(() => near.asked).toBe(2);
    });
  });
});
