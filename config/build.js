// `npm run build` and `npm run demo`: bundles src and its libraries to dist, because node takes longer to find and read
// a thousand files than to run them. Packages that src loads on demand by createRequire (Redis, YAML, countries) stay
// in node_modules.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { build } from 'rolldown';

const BROWSER = 'src/admin/status/browser';

/** The scripts of the status page are sent to browsers unchanged. */
const statusScripts = {
  name: 'status-scripts',
  buildStart() {
    for (const name of readdirSync(BROWSER)) {
      this.emitFile({
        type: 'asset',
        fileName: `browser/${name}`,
        source: readFileSync(`${BROWSER}/${name}`),
      });
    }
  },
};

/** Stack traces name the sources of src. Maps of the libraries would only cost parsing at each start. */
const mapsOfSrcOnly = {
  name: 'maps-of-src-only',
  transform: {
    filter: { id: /node_modules/ },
    handler: (code) => ({ code, map: { mappings: '' } }),
  },
};

/**
 * Library modules that src does not use: fetch, WebSocket and mocks of undici; the body parsers of Express, with their
 * character sets, and its file server. They cost CPU and memory at each start. Code that needs one of them fails in the
 * built program only: test/live/internals checks for that.
 */
const UNUSED_MODULES = {
  undici$: resolve('config/undici.js'),
  'body-parser': false,
  'serve-static': false,
  send: false,
};

/** src uses only JSON and text types (`res.type`, checked by test/live/internals); the others only cost memory. */
const fewMediaTypes = {
  name: 'few-media-types',
  transform: {
    filter: { id: /mime-db\/db\.json$/ },
    handler(code) {
      const types = Object.entries(JSON.parse(code)).filter(([name]) => /^text\/|\/json$/.test(name));
      return { code: JSON.stringify(Object.fromEntries(types)), map: { mappings: '' } };
    },
  },
};

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8').trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
}

/** Licences require their text in each copy. */
const licenses = {
  name: 'licenses',
  generateBundle() {
    const folders = [...this.getModuleIds()].map(
      (id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0],
    );
    const packages = [...new Set(folders)].filter((folder) => existsSync(`${folder}/package.json`)).sort();
    const source = packages.map(licenseOf).join(`\n${'-'.repeat(80)}\n\n`);
    this.emitFile({ type: 'asset', fileName: 'licenses.txt', source });
  },
};

/** The entry points of package.json, and the demo. */
const PROGRAMS = {
  dist: {
    main: 'src/main.ts',
    app: 'src/app.ts',
    config: 'src/config/load.ts',
    logger: 'src/observe/logger.ts',
    metrics: 'src/observe/metrics.ts',
    server: 'src/server/http-server.ts',
  },
  'dist-demo': { main: 'src/dev-server/demo.ts' },
};

for (const dir of process.argv.slice(2)) {
  await build({
    input: PROGRAMS[dir],
    platform: 'node',
    resolve: { alias: UNUSED_MODULES },
    plugins: [statusScripts, fewMediaTypes, mapsOfSrcOnly, licenses],
    output: {
      dir,
      cleanDir: true,
      sourcemap: true,
      sourcemapExcludeSources: true,
      chunkFileNames: '[name]-[hash].js',
    },
  });
}
