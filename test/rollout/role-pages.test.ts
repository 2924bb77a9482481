// Operator pages in config/examples: their configuration starts, and their commands print the shown output.
import '../support/real-sockets.js';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type BuiltProxy, startBuiltProxy } from '../support/built-proxy.js';
import { createCertificate } from '../support/certificate.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { itWithProgram } from '../support/programs.js';
import { recordReply, startJsonServer } from '../support/resolver-double.js';
import { walkThrough } from '../support/walk-through.js';

const certificate = await createCertificate();
const demo = await startDemoServer({ tls: certificate });

/** Returns a page whose example addresses and prefix are replaced with those of this test. */
const pageWith = (name: string, replaced: Record<string, string>): string =>
  Object.entries(replaced).reduce((text, [from, to]) => text.replaceAll(from, to), exampleText(name));

const HANDLE_SERVER = {
  'https://handle.example.org:8000': demo.url,
  'AB:CD:…': certificate.fingerprint,
  '20.500.12345': '21.T11998',
};

/** Starts the program with the configuration shown on the page. */
async function startByPage(
  page: string,
): Promise<BuiltProxy & { config: string; variables: Record<string, string> }> {
  const folder = mkdtempSync(join(tmpdir(), 'handle-proxy-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const [, yaml = ''] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
  const config = join(folder, 'proxy.yaml');
  writeFileSync(config, yaml.replace('/var/lib/handle-resolver-proxy', folder).replaceAll(': 2641', ': 0'));
  const proxy = await startBuiltProxy({ CONFIG: config });
  const { url, adminUrl } = proxy;
  return { ...proxy, config, variables: { PROXY: url, PROXY_URL: url, ADMIN_URL: adminUrl } };
}

describe('page “I run DSpace”', () => {
  it('shows the actual output of each command', async () => {
    const item = 'https://repository.example.org/handle/123456/1';
    const origin = await startJsonServer((path) => {
      if (path === '/server/listprefixes') return { body: ['123456'] };
      return { body: path === '/server/resolve/123456/1' ? [item] : null };
    });
    const DSPACE = `${origin}/server`;
    const page = pageWith('dspace.md', { 'https://repository.example.org/server': DSPACE });
    const { config, variables } = await startByPage(page);
    expect(await walkThrough(page, { ...variables, DSPACE, CONFIG: config })).toBe(4);
  });
});

describe('page “I run Dataverse or another program with a Java Handle server”', () => {
  it('shows the actual output of each command', async () => {
    const page = pageWith('java-handle-server.md', HANDLE_SERVER);
    const { variables } = await startByPage(page);
    expect(await walkThrough(page, { ...variables, HANDLE_SERVER: demo.url, HANDLE: '21.T11998/page' })).toBe(
      4,
    );
  });
});

describe('page “I run an ePIC or Handle.Net service”', () => {
  itWithProgram('jq', 'shows the actual output of each command', async () => {
    const page = pageWith('epic-service.md', HANDLE_SERVER);
    const { variables } = await startByPage(page);
    expect(await walkThrough(page, variables)).toBe(3);
  });
});

describe('page “My institution wants a cache of doi.org and hdl.handle.net”', () => {
  itWithProgram(
    'jq',
    'shows the actual output of each command, including when a resolver responds with 429',
    async () => {
      const doi = await startJsonServer((path) =>
        path.endsWith('/later')
          ? { status: 429, headers: { 'Retry-After': '60' }, body: {} }
          : recordReply(path, { '10.5072/example': 'https://example.org/article' }),
      );
      const handle = await startJsonServer((path) =>
        recordReply(path, { '20.500.12345/abc': 'https://example.org/item' }),
      );
      const page = exampleText('own-cache.md')
        .replace('url: https://doi.org', `url: ${doi}`)
        .replace('url: https://hdl.handle.net', `url: ${handle}`);
      const { variables } = await startByPage(page);
      expect(await walkThrough(page, variables)).toBe(5);
    },
  );
});
