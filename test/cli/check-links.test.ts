// Link checks of records, against web servers on sockets.
import '../support/real-sockets.js';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startConnectProxy } from '../support/connect-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { freePort } from '../support/free-port.js';
import { builtCli, cli, withoutProgress } from '../support/cli.js';
import { startOperated } from '../support/operated-proxy.js';
import { fileOf, recordLine } from '../support/record-files.js';
import { newFolder } from '../support/folder.js';
import { urlValue } from '../support/upstream.js';

type Answer = (req: IncomingMessage, res: ServerResponse) => void;

/** Starts a web server; returns its address and the requests that it gets. */
async function startSite(answers: Record<string, number | Answer>) {
  const asked: string[] = [];
  const server = createServer((req, res) => {
    asked.push(`${req.method ?? ''} ${req.url ?? ''}`);
    const answer = answers[req.url ?? ''] ?? 404;
    if (typeof answer === 'number') res.writeHead(answer).end();
    else answer(req, res);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const exportOf = (urls: Record<string, string>): string =>
  fileOf(
    Object.entries(urls)
      .map(([handle, url]) => recordLine(handle, [urlValue(url)]))
      .join('\n'),
  );

interface DeadLink {
  handle: string;
  url: string;
  result: string;
  deadSince: string;
}

async function check(args: string[], env: Record<string, string> = {}) {
  const ran = await cli(['check-links', '--rate', '6000', '--json', ...args], env);
  const dead = JSON.parse(ran.stdout === '' ? '[]' : ran.stdout) as DeadLink[];
  return { ...ran, stderr: withoutProgress(ran.stderr), dead };
}

const stateFile = (): string => join(newFolder(), 'links.ndjson');

describe('check-links', () => {
  test('reports dead links by handle, and requests each URL once', async () => {
    const site = await startSite({
      '/ok': 200,
      '/head': (req, res) => void res.writeHead(req.method === 'HEAD' ? 405 : 200).end(),
      '/login': 403,
      '/moved': (_req, res) => void res.writeHead(301, { Location: '/gone' }).end(),
    });
    const urls = { a: '/ok', b: '/head', c: '/login', d: '/moved', e: '/gone', f: '/gone' };
    const file = exportOf({
      ...Object.fromEntries(
        Object.entries(urls).map(([name, path]) => [`21.T1/${name}`, `${site.url}${path}`]),
      ),
      '21.T1/g': 'ftp://example.org/',
      '21.T1/h': 'http://127.0.0.1:1/',
    });
    const { code, stderr, dead } = await check([file, '--state', stateFile()]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '7 links: 4 dead, 3 not, 0 left\n' });
    expect(dead.map(({ handle, result }) => [handle, result])).toEqual([
      ['21.T1/d', '404'],
      ['21.T1/e', '404'],
      ['21.T1/f', '404'],
      ['21.T1/g', 'not an http or https URL of at most 8000 characters'],
      ['21.T1/h', expect.stringContaining('bad port') as string],
    ]);
    expect(site.asked.filter((line) => line.endsWith('robots.txt'))).toHaveLength(1);
    expect(site.asked.filter((line) => line === 'GET /ok')).toEqual([]);
    expect(site.asked.filter((line) => line === 'HEAD /ok')).toHaveLength(1);
  });

  test('requests a URL with GET if the server cuts the connection at HEAD', async () => {
    const site = await startSite({
      '/cut': (req, res) => void (req.method === 'HEAD' ? req.socket.destroy() : res.writeHead(200).end()),
    });
    const { dead } = await check([exportOf({ '21.T1/a': `${site.url}/cut` }), '--state', stateFile()]);
    expect(dead).toEqual([]);
    expect(site.asked).toEqual(['GET /robots.txt', 'HEAD /cut', 'GET /cut']);
  });

  test('sends http URLs to the outgoing proxy, which opens tunnels to the https port only', async () => {
    const site = await startSite({ '/page': 200 });
    const outgoing = await startConnectProxy();
    const place = site.url.replace('127.0.0.1', 'web.test');
    const file = exportOf({
      '21.T1/a': `${place}/page`,
      '21.T1/b': `${place}/gone`,
      '21.T1/c': `http://away.test:${await freePort()}/`,
      '21.T1/d': `https://tls.test:${await freePort()}/`,
      '21.T1/e': `${site.url}/page`,
    });
    const proxy = outgoing.url.replace('//', '//user:pass%40@');
    const env = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy };
    const { code, dead } = await check([file, '--state', stateFile()], env);
    expect(code).toBe(0);
    expect(dead.map(({ handle, result }) => [handle, result])).toEqual([
      ['21.T1/b', '404'],
      ['21.T1/c', '500'],
      ['21.T1/d', `outgoing proxy ${new URL(outgoing.url).host}, HTTP 503`],
    ]);
    expect(outgoing.requests).toContain(`HEAD ${place}/page`);
    expect(outgoing.tunnels.every((host) => host.startsWith('tls.test:'))).toBe(true);
    expect(new Set(outgoing.logins)).toEqual(new Set([`Basic ${btoa('user:pass@')}`]));
    expect(site.asked.filter((line) => line === 'HEAD /page')).toHaveLength(2);
  });

  test.each([
    ['http', 'is down', undefined, 'ECONNREFUSED'],
    ['https', 'is down', undefined, 'ECONNREFUSED'],
    ['http', 'requires a login', 407, 'HTTP 407'],
    ['https', 'requires a login', 407, 'HTTP 407'],
  ])('calls no %s URL dead when the outgoing proxy %s', async (scheme, _what, status, reason) => {
    const url =
      status === undefined ? `http://127.0.0.1:${await freePort()}` : (await startConnectProxy(status)).url;
    const state = stateFile();
    const proxy = url.replace('//', '//user:hunter2@');
    const { code, stderr, dead } = await check(
      [exportOf({ '21.T1/a': `${scheme}://web.test/` }), '--state', state],
      { HTTP_PROXY: proxy, HTTPS_PROXY: proxy },
    );
    const { host } = new URL(url);
    expect([code, dead]).toEqual([1, []]);
    expect(stderr).toContain(`no link can be checked through the outgoing proxy: ${host}, ${reason}`);
    expect(stderr).not.toContain('hunter2');
    expect(readFileSync(state, 'utf8')).toBe('');
  });

  test('continues when a server behind the outgoing proxy answers 407', async () => {
    const site = await startSite({ '/page': 200, '/login': 407 });
    const place = site.url.replace('127.0.0.1', 'web.test');
    const file = exportOf({ '21.T1/a': `${place}/login`, '21.T1/b': `${place}/page` });
    const { url } = await startConnectProxy();
    const { code, stderr } = await check([file, '--state', stateFile()], { HTTP_PROXY: url });
    expect([code, stderr]).toEqual([0, '2 links: 1 dead, 1 not, 0 left\n']);
  });

  test('names no outgoing proxy for a TLS error of a server', async () => {
    const site = await startSite({});
    const file = exportOf({ '21.T1/a': site.url.replace('http:', 'https:') });
    const { dead } = await check([file, '--state', stateFile()], { HTTPS_PROXY: 'http://127.0.0.1:1' });
    expect(dead).toMatchObject([{ result: expect.stringContaining('wrong version number') as string }]);
    expect(dead[0]?.result).not.toContain('outgoing proxy');
  });

  test('does not call a URL dead that the outgoing proxy forbids', async () => {
    const { url } = await startConnectProxy(403);
    const file = exportOf({ '21.T1/a': 'http://web.test/', '21.T1/b': 'https://web.test/' });
    const { code, dead } = await check([file, '--state', stateFile()], { HTTP_PROXY: url, HTTPS_PROXY: url });
    expect([code, dead]).toEqual([0, []]);
  });

  test('obeys robots.txt: the longest rule of its group', async () => {
    const rules = 'User-agent: *\nDisallow: /\n\nUser-agent: x\nUser-agent: Handle-Resolver-Proxy\n';
    const site = await startSite({
      '/robots.txt': (_req, res) =>
        void res.end(`${rules}Disallow: /private # no\nAllow: /private/*.html$\nDisallow:\n`),
    });
    const file = exportOf({
      '21.T1/a': `${site.url}/private/a`,
      '21.T1/b': `${site.url}/private/b.html`,
      '21.T1/c': `${site.url}/c`,
    });
    const { dead, stderr } = await check([file, '--state', stateFile()]);
    expect(dead.map(({ handle }) => handle)).toEqual(['21.T1/b', '21.T1/c']);
    expect(stderr).toContain('3 links: 2 dead, 1 not');
    expect(site.asked).not.toContain('HEAD /private/a');
  });

  test('reads a robots.txt of 450 KB with as many programs and rules in 128 MB', async () => {
    const agents = Array.from({ length: 12_000 }, (_, at) => `User-agent: a${at}`);
    const rules = Array.from({ length: 15_000 }, (_, at) => `Disallow: /p*${at}`);
    const text = [...agents, 'User-agent: handle-resolver-proxy', ...rules, 'Disallow: /*a*b*c$'].join('\n');
    const site = await startSite({ '/robots.txt': (_req, res) => void res.end(text), '/free': 200 });
    const paths = ['/free', '/p/x/14999', `/${'ab'.repeat(2000)}/c`];
    const file = exportOf(Object.fromEntries(paths.map((path, at) => [`21.T1/${at}`, `${site.url}${path}`])));
    const args = ['check-links', '--rate', '6000', file, '--state', stateFile()];
    const { code, stderr } = await builtCli(args, { NODE_OPTIONS: '--max-old-space-size=128' });
    // Lines of the progress precede it on a slow machine.
    expect([code, stderr.trimEnd().split('\n').at(-1)]).toEqual([0, '3 links: 0 dead, 3 not, 0 left']);
    expect(site.asked).toEqual(['GET /robots.txt', 'HEAD /free']);
  });

  test('combines all groups of this program, which precede those of all programs', async () => {
    const groupOf = (agent: string, path: string): string => `User-agent: ${agent}\nDisallow: ${path}\n`;
    const own = 'handle-resolver-proxy';
    const text =
      groupOf('*', '/a') + groupOf(own, '/b') + groupOf('x', '/c') + groupOf(own, '/d') + groupOf('*', '/e');
    const site = await startSite({ '/robots.txt': (_req, res) => void res.end(text) });
    const urls = Array.from('abcde', (name): [string, string] => [`21.T1/${name}`, `${site.url}/${name}`]);
    const { dead } = await check([exportOf(Object.fromEntries(urls)), '--state', stateFile()]);
    expect(dead.map(({ handle }) => handle)).toEqual(['21.T1/a', '21.T1/c', '21.T1/e']);
  });

  test('requests no URL that is too long for a redirect', async () => {
    const site = await startSite({});
    const file = exportOf({ '21.T1/a': `${site.url}/${'a'.repeat(8000)}` });
    const { dead } = await check([file, '--state', stateFile()]);
    expect(dead).toMatchObject([{ result: 'not an http or https URL of at most 8000 characters' }]);
    expect(site.asked).toEqual([]);
  });

  const cjk = '\u4e00'.repeat(254);
  test.each([
    ['a long URL', `https://${'\u4e00'.repeat(8000)}.invalid/`],
    ['a long host', `https://${cjk}/`],
    ['a long host after a user', `http:\\\\me:secret@${cjk}:80/`],
    ['a long host with a line break in the scheme', ` ht\ntp://${cjk}?a`],
  ])('rejects %s without parsing it, which would take seconds', async (_what, url) => {
    const parsed = vi.spyOn(URL, 'canParse');
    onTestFinished(() => {
      parsed.mockRestore();
    });
    const { dead } = await check([exportOf({ '21.T1/a': url }), '--state', stateFile()]);
    expect(dead).toMatchObject([{ result: 'not an http or https URL of at most 8000 characters' }]);
    expect(parsed.mock.calls.filter(([text]) => text.includes('\u4e00'))).toEqual([]);
  });

  test('follows a redirect to a long path, and with a long password', async () => {
    const path = `/${'p'.repeat(300)}`;
    const site = await startSite({
      '/a': (_req, res) => void res.writeHead(302, { Location: path }).end(),
      [path]: (_req, res) => void res.writeHead(302, { Location: `${path.slice(1)}b` }).end(),
      [`${path}b`]: 200,
    });
    const withPassword = `${site.url.replace('//', `//me:${'p'.repeat(300)}@`)}/c`;
    const { dead } = await check([
      exportOf({ '21.T1/a': `${site.url}/a`, '21.T1/c': withPassword }),
      ...['--state', stateFile()],
    ]);
    expect(dead.map(({ handle }) => handle)).toEqual(['21.T1/c']);
    expect(dead[0]?.result).not.toContain('8000 characters');
  });

  test('requests a URL with a password without it, and gives a reason if fetch gives none', async () => {
    const site = await startSite({ '/a': 200, '/b': 407 });
    const file = exportOf({
      '21.T1/a': `${site.url.replace('//', '//me:secret@')}/a`,
      '21.T1/b': `${site.url}/b`,
    });
    const { dead } = await check([file, '--state', stateFile()]);
    expect(dead).toMatchObject([{ handle: '21.T1/b', result: 'fetch failed' }]);
  });

  test('requests nothing from a host whose robots.txt fails', async () => {
    const site = await startSite({ '/robots.txt': 503 });
    const { dead } = await check([exportOf({ '21.T1/a': `${site.url}/a` }), '--state', stateFile()]);
    expect(dead).toEqual([]);
    expect(site.asked).toEqual(['GET /robots.txt']);
  });

  test('keeps since when a link is dead, and checks only what is due', async () => {
    const pages: Record<string, number> = {};
    const site = await startSite(pages);
    const state = stateFile();
    const csv = join(newFolder(), 'dead.csv');
    const file = exportOf({ '=21.T1/a': `${site.url}/a` });
    const [first] = (await check([file, '--state', state])).dead;
    const before = site.asked.length;
    expect((await check([file, '--state', state])).dead).toEqual([first]);
    expect(site.asked).toHaveLength(before);
    const [again] = (await check([file, '--state', state, '--age', '0', '--csv', csv])).dead;
    expect(again?.deadSince).toBe(first?.deadSince);
    const [head, row] = readFileSync(csv, 'utf8').split('\r\n');
    expect(head).toBe('"handle","url","result","deadSince","checkedAt"');
    expect(row).toContain(`"'=21.T1/a","${site.url}/a","404","${first?.deadSince ?? ''}"`);
    pages['/a'] = 200;
    expect((await check([file, '--state', state, '--age', '0'])).dead).toEqual([]);
    pages['/a'] = 410;
    const [later] = (await check([file, '--state', state, '--age', '0'])).dead;
    expect(Date.parse(later?.deadSince ?? '')).toBeGreaterThan(Date.parse(first?.deadSince ?? ''));
  });

  test('checks a URL again whose last check is in the future, because the clock was set back', async () => {
    const site = await startSite({ '/a': 200 });
    const state = stateFile();
    const checkedAt = new Date(Date.now() + 86_400_000).toISOString();
    writeFileSync(state, `${JSON.stringify({ url: `${site.url}/a`, result: '404', checkedAt })}\n`);
    const { dead } = await check([exportOf({ '21.T1/a': `${site.url}/a` }), '--state', state]);
    expect(dead).toEqual([]);
    expect(site.asked).toContain('HEAD /a');
  });

  test('continues after a run whose last line is cut off', async () => {
    const site = await startSite({ '/a': 200, '/b': 200 });
    const state = stateFile();
    const file = exportOf({ '21.T1/a': `${site.url}/a`, '21.T1/b': `${site.url}/b` });
    const known = { url: `${site.url}/a`, result: '200', checkedAt: new Date().toISOString() };
    writeFileSync(state, `${JSON.stringify(known)}\n{"url":"${site.url}/b","resu`);
    expect((await check([file, '--state', state])).code).toBe(0);
    expect(site.asked).toEqual(['GET /robots.txt', 'HEAD /b']);
    expect(readFileSync(state, 'utf8').trim().split('\n')).toHaveLength(2);
  });

  test.each([
    ['an export', `${recordLine('21.T1/a', [urlValue('http://127.0.0.1/')])}\n`],
    ['a list of handles', '21.T1/b\n'],
    ['text without a line end', 'notes'],
    ['JSON without a URL', 'null\n'],
  ])('leaves a state file as it is that is %s', async (_, text) => {
    const site = await startSite({ '/a': 200 });
    const state = stateFile();
    const known = { url: `${site.url}/b`, result: '200', checkedAt: new Date().toISOString() };
    const before = `${JSON.stringify(known)}\n${text}`;
    writeFileSync(state, before);
    const { code, stderr } = await check([exportOf({ '21.T1/a': `${site.url}/a` }), '--state', state]);
    expect(stderr).toBe(
      `cannot use the state file: line 2 is no check of a link: give another file, or remove the line\n`,
    );
    expect(code).toBe(2);
    expect(readFileSync(state, 'utf8')).toBe(before);
    expect(site.asked).toEqual([]);
  });

  test('sends one request at a time to a host, at the given rate', async () => {
    let open = 0;
    let most = 0;
    const times: number[] = [];
    const slow: Answer = (_req, res) => {
      times.push(performance.now());
      most = Math.max(most, ++open);
      setImmediate(() => {
        open--;
        res.end();
      });
    };
    const site = await startSite({ '/robots.txt': slow, '/a': slow, '/b': slow, '/c': slow });
    const urls = Object.fromEntries(['a', 'b', 'c'].map((name) => [`21.T1/${name}`, `${site.url}/${name}`]));
    const args = ['check-links', exportOf(urls), '--state', stateFile(), '--rate', '240'];
    expect((await cli(args)).code).toBe(0);
    expect(most).toBe(1);
    // Each pause begins after a response, so a slow machine only lengthens the time.
    expect((times[3] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(740);
  });

  test('reads the export of a running proxy', async () => {
    const { url } = await startDemoServer();
    const { place, url: proxy } = await startOperated(url);
    await fetch(`${proxy}/api/handles/21.T11998/page`);
    const state = stateFile();
    // Nothing is requested, because the result is recent.
    const checkedAt = new Date().toISOString();
    const known = { url: 'https://example.org/page', result: '404', checkedAt, deadSince: checkedAt };
    writeFileSync(state, `${JSON.stringify(known)}\n`);
    const { dead } = await check(['--prefix', '21.T11998', '--state', state, '--admin', place.ADMIN_URL]);
    expect(dead).toMatchObject([{ handle: '21.T11998/PAGE', deadSince: checkedAt }]);
  });

  test.each([
    ['neither a file nor a prefix', [], 'Give either a file or --prefix.'],
    ['a file without URLs', ['/dev/null'], 'There are no URLs to check.'],
    ['a missing file', ['/nowhere'], 'cannot read /nowhere: ENOENT'],
  ])('needs URLs: %s is exit code 2', async (_what, args, message) => {
    const { code, stderr } = await check([...args, '--state', stateFile()]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
