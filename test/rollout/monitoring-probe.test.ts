// The example "Monitoring with a handle that is created and deleted", run step by step.
import '../support/real-sockets.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startBuiltProxy } from '../support/built-proxy.js';
import { startDemoServer } from '../support/demo.js';
import { exampleText } from '../support/examples.js';
import { readDocument } from '../support/markdown.js';
import { createShell, stepsOf } from '../support/walk-through.js';

const demo = await startDemoServer();
const page = exampleText('monitoring.md').replaceAll('20.500.12345', '21.T11998');
const steps = stepsOf(page);
const [, yaml = ''] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
const { deletion } = parse(yaml) as { deletion: { allowedFor: string } };

describe('monitoring probe', () => {
  test('creates, resolves, changes and deletes only its own handle', async () => {
    const proxy = await startBuiltProxy({
      UPSTREAM_URL: demo.url,
      DELETION_ALLOWED_FOR: deletion.allowedFor,
    });
    const here = { PROXY: proxy.url, LOGIN: '300%3A21.T11998/USER01:password', OTHER: '21.T11998/page' };
    const shell = createShell();
    for (const { commands, shown } of steps) {
      const said = await shell(commands);
      if (shown !== undefined) expect(said, commands).toMatch(shown);
      if (commands.includes('export PROXY='))
        await shell(
          Object.entries(here)
            .map(([name, value]) => `export ${name}=${value}`)
            .join('\n'),
        );
    }
    expect(steps.filter(({ shown }) => shown !== undefined)).toHaveLength(4);
    expect((await fetch(`${proxy.url}/api/handles/${here.OTHER}?auth=true`)).status).toBe(200);
  });

  test('uses the configuration shown in config/README.md', () => {
    expect(readDocument('config/README.md')).toContain(
      exampleText('monitoring.md').match(/^```yaml\n[^]*?^```$/m)?.[0],
    );
  });
});
