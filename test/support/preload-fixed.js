// Preloaded into the built program, which offers no such setting: replaces constants of its configuration with
// those in FIXED_VALUES.
import { register } from 'node:module';
import { replaceFixed } from './replace-fixed.js';

const LOADED = 'const loadStartConfig = loader.loadStartConfig;';
const REPLACED = `const loadStartConfig = (sources) => {
  const start = loader.loadStartConfig(sources);
  return { ...start, config: globalThis.replaceFixed(start.config) };
};`;

/** @type {unknown} */
const given = JSON.parse(process.env['FIXED_VALUES'] ?? '{}');
const values = /** @type {{ upstream?: unknown }} */ (given);
Object.assign(globalThis, {
  /** @type {(config: { upstreams: readonly unknown[] }) => unknown} */
  replaceFixed: (config) => replaceFixed(config, values),
});

const hooks = `export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!/\\/dist\\/config-[^/]+\\.js$/.test(url)) return loaded;
  const source = String(loaded.source);
  if (!source.includes(${JSON.stringify(LOADED)})) throw new Error('loadStartConfig is not in ' + url);
  return { ...loaded, source: source.replace(${JSON.stringify(LOADED)}, () => ${JSON.stringify(REPLACED)}) };
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
