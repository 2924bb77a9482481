// `npm pack`: writes the type declarations of the exports in package.json, and their imports, to dist/types.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import ts from 'typescript';

const FOLDER = resolve('dist/types');
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'));

const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, '.');
const emitted = new Map();
ts.createProgram(fileNames, {
  ...options,
  noEmit: false,
  noCheck: true,
  declaration: true,
  emitDeclarationOnly: true,
  // What only tests use: its types need packages that users do not have.
  stripInternal: true,
  rootDir: resolve('src'),
  outDir: FOLDER,
}).emit(undefined, (name, text) => emitted.set(name, text));

const written = new Set();

function write(name) {
  if (written.has(name)) return;
  const text = emitted.get(name);
  // TypeScript omits the declarations of a file if it cannot name a type in it.
  if (text === undefined) throw new Error(`${name} is missing: run tsc with --declaration`);
  written.add(name);
  mkdirSync(dirname(name), { recursive: true });
  writeFileSync(name, text);
  for (const { fileName } of ts.preProcessFile(text).importedFiles) {
    if (fileName.startsWith('.')) write(join(dirname(name), fileName.replace(/\.js$/, '.d.ts')));
  }
}

for (const { types } of Object.values(exports)) if (types !== undefined) write(resolve(types));
