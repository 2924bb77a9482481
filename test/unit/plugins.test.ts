// Loads and starts plugins of a few lines.
import { describe, expect, it } from 'vitest';
import type { Plugin, Started } from '../../src/plugin.js';
import { loadPlugins, startPlugins } from '../../src/app/load-plugins.js';
import type { Host } from '../../src/host.js';
import { PLUGINS } from '../../src/app/plugins.js';
import type { Config } from '../../src/config/schema.js';
import { createHooks } from '../../src/hooks.js';

const NO_SETTINGS = {} as Config;

function pluginOf(name: string, started: Started, isOn = true): Plugin & { loads: number } {
  const plugin = {
    name,
    loads: 0,
    isEnabled: () => isOn,
    load() {
      plugin.loads++;
      return Promise.resolve({ start: () => started });
    },
  };
  return plugin;
}

async function startAll(...plugins: Plugin[]) {
  const hooks = createHooks();
  const loaded = await loadPlugins(plugins, NO_SETTINGS);
  const host = { hooks } as unknown as Host;
  return { hooks, ...startPlugins(loaded, host, NO_SETTINGS) };
}

describe('plugins', () => {
  it('have their functions called in the order of the list', async () => {
    const calls: string[] = [];
    const written = (name: string) => (key: string) => void calls.push(`${name} ${key}`);
    const { hooks } = await startAll(
      pluginOf('one', { written: written('one') }),
      pluginOf('two', { written: written('two') }),
    );
    for (const each of hooks.written) each('21.T1/A');
    expect(calls).toEqual(['one 21.T1/A', 'two 21.T1/A']);
  });

  it('are not loaded while they are off, and add nothing to any hook', async () => {
    const off = pluginOf('off', { hit: () => undefined }, false);
    const { hooks } = await startAll(off);
    expect(off.loads).toBe(0);
    expect(hooks).toEqual(createHooks());
  });

  it('leave a hook alone for which they have no function', async () => {
    const { hooks } = await startAll(pluginOf('one', { hit: undefined }));
    expect(hooks).toEqual(createHooks());
  });

  it('handle their routes on the admin listener', async () => {
    const [one, two] = [() => undefined, () => undefined];
    const { adminHandlers } = await startAll(
      pluginOf('one', { adminHandlers: { one } }),
      pluginOf('two', { adminHandlers: { two } }),
    );
    expect(adminHandlers).toEqual({ one, two });
  });

  it('have different names', () => {
    const names = PLUGINS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
