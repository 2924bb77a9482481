// `npm run build` and `npm run demo`: bundles src and its libraries to dist, because Node takes longer to
// find and read a thousand files than to run them. Packages that src loads on demand with createRequire
// (Redis, YAML, countries) stay in node_modules.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { build } from 'rolldown';
import { openApiDocuments } from './openapi-documents.js';

const BROWSER = 'src/plugins/admin/status/browser';

/** Copies the status page scripts, which browsers load unchanged. */
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

/** Keeps source maps for src only, for stack traces. Library maps would just slow down each start. */
const mapsOfSrcOnly = {
  name: 'maps-of-src-only',
  transform: {
    filter: { id: /node_modules/ },
    handler: (code) => ({ code, map: { mappings: '' } }),
  },
};

/** Library modules that src does not use, and that are long or import long ones. */
const UNUSED_MODULES = [
  // Express: bodies, nested query parameters, files, views, cookies and downloads.
  /\/node_modules\/(?:body-parser|qs|send|serve-static|cookie|cookie-signature|content-disposition)\//,
  /\/express\/lib\/view\.js$/,
  // http-proxy-middleware: wildcards in paths.
  /\/node_modules\/micromatch\//,
  // undici: HTTP/2, and forms as request bodies.
  /\/undici\/lib\/(?:dispatcher\/client-h2|web\/fetch\/body)\.js$/,
  // pino: writing in a thread or by its buffer, and redaction by paths.
  /\/node_modules\/(?:sonic-boom|@pinojs\/redact)\//,
  /\/pino\/lib\/transport\.js$/,
  // prom-client: summaries, exemplars, pushing, and metrics of several processes.
  /\/node_modules\/@opentelemetry\/api\//,
  /\/prom-client\/lib\/(?:summary|pushgateway|cluster)\.js$/,
  // debug: the part for browsers.
  /\/node_modules\/debug\/src\/browser\.js$/,
];

/**
 * Replaces unused library modules, which cost CPU and memory at each start, with a class. Code that needs one of
 * them fails only in the built program; test/live/internals checks this.
 */
const unusedModules = {
  name: 'unused-modules',
  load: {
    filter: { id: UNUSED_MODULES },
    handler: () => ({ code: 'module.exports = class Unused {};', map: { mappings: '' } }),
  },
};

/**
 * Keeps only the JSON and text types that src uses (`res.type`, checked by test/live/internals), to save
 * memory.
 */
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

/**
 * Escapes characters outside ASCII: a single one doubles the memory of a file. Wraps CommonJS modules in functions, which
 * V8 compiles with the file, rather than in arrow functions, which it first parses and later compiles.
 */
const quickToLoad = {
  name: 'quick-to-load',
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== 'chunk') continue;
      chunk.code = chunk.code
        .replaceAll(/(?<=__commonJSMin\()\((\([\w$, ]*\)) =>/g, '(function $1')
        .replaceAll(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
    }
  },
};

function licenseOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  const text = file === undefined ? '' : readFileSync(`${folder}/${file}`, 'utf8').trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
}

/** Copies the library licences, which require their text in each copy. */
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

/** The entry points in package.json, and the demo. */
const PROGRAMS = {
  dist: {
    main: 'src/cli/main.ts',
    app: 'src/app/app.ts',
    config: 'src/app/config.ts',
    logger: 'src/observe/logger.ts',
    metrics: 'src/observe/metrics.ts',
    server: 'src/server/http-server.ts',
  },
  'dist-demo': { main: 'src/cli/demo.ts' },
};

for (const dir of process.argv.slice(2)) {
  await build({
    input: PROGRAMS[dir],
    platform: 'node',
    resolve: {
      alias: {
        undici$: resolve('config/undici.js'),
        // Only development packages install this optional dependency of debug.
        'supports-color': false,
      },
    },
    plugins: [
      statusScripts,
      openApiDocuments,
      unusedModules,
      fewMediaTypes,
      mapsOfSrcOnly,
      quickToLoad,
      licenses,
    ],
    output: {
      dir,
      cleanDir: true,
      sourcemap: true,
      sourcemapExcludeSources: true,
      chunkFileNames: '[name]-[hash].js',
      // Each file delays the start.
      codeSplitting: {
        groups: [
          // Small modules that nearly every command shares.
          {
            name: 'handle',
            test: /src\/(?:handle\/|errors\.ts|time-slicer\.ts|clock\.ts|config\/(?:addresses|package-files)|upstream\/caller|observe\/top-counts)/,
          },
          // What plugins declare, with zod: otherwise a file for each plugin.
          { name: 'declared', test: /src\/plugins\/[\w-]+\/plugin|node_modules\/zod\// },
          // The plugins that are on by default.
          {
            name: 'default',
            test: /src\/plugins\/(?:(?:admin|batch|locations|native|pages|snapshot|traffic)\/|openapi\/openapi\.)/,
          },
          // What the core shares with plugins.
          {
            name: 'core',
            test: /src\/(?:cache|html|hooks|http|maybe|redirect|resolver|server|upstream|write)\b/,
          },
        ],
      },
    },
  });
}
