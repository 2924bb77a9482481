#!/usr/bin/env node
// Entry point for the image, the systemd unit and `npm start`: runs the command, by default `serve`.
import { readFileSync } from 'node:fs';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  engines: { node: string };
};

const [major = 0, minor = 0] = numbersOf(process.version);
const [requiredMajor = 0, requiredMinor = 0] = numbersOf(engines.node);

if (major > requiredMajor || (major === requiredMajor && minor >= requiredMinor)) {
  // Only now, because an import of what an older Node.js lacks is a SyntaxError that names no version.
  await import('./cli/main.js');
} else {
  const required = `Node.js ${requiredMajor}.${requiredMinor} or later is required`;
  process.stderr.write(`${required}; ${process.execPath} is ${process.version.slice(1)}.\n`);
  process.exitCode = 2;
}

function numbersOf(version: string): number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}
