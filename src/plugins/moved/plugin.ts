// Moved handles: a file with new URLs, which answers before a repository does.
import type { Plugin } from '../../plugin.js';
import { type SectionsOf, filePath, fixed, section } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';
import { type Judge, fileProblem } from '../../config/start-problems.js';
import { upstreamServers } from '../../config/upstream-servers.js';
import { handleRef } from '../../handle/handle.js';
import { runToEnd } from '../../time-slicer.js';
import { createPrefixRouting } from '../../upstream/routing.js';
import { readTable } from './table.js';

const SECTIONS = {
  moved: section({
    file: filePath.describe(
      'File with a line `handle,URL` for each moved handle, or `prefix/*,URL`, which answers before the repository (`kind` `dspace` or `template`) of the prefix; a change counts within seconds: write a new file and rename it. See "Moved handles".',
    ),
    // A replaced file counts after twice this time (ms); SIGHUP reads it immediately.
    everyMs: fixed(5000),
  }),
};

export type MovedConfig = Config & SectionsOf<typeof SECTIONS>;

export function createTableReader(settings: Config) {
  const { caseSensitive } = settings.upstream;
  const findServers = createPrefixRouting(upstreamServers(settings));
  const isOnlyRead = (handle: string): boolean => {
    const [server] = findServers(handleRef(handle, caseSensitive));
    return server !== undefined && server.kind !== 'handle-server';
  };
  return (text: string) => readTable(text, isOnlyRead);
}

function tableJudge(settings: Config): Judge {
  const readText = createTableReader(settings);
  return (text, path) => {
    const table = runToEnd(readText(text));
    return typeof table === 'string' ? `${path} is no table of moved handles: ${table}` : undefined;
  };
}

export const moved: Plugin<MovedConfig> = {
  name: 'moved',
  sections: SECTIONS,
  startProblems: (settings, readFile, isReload) =>
    // While requests wait, the table is read in time slices, and rejected alone.
    isReload ? [] : [['moved.file', fileProblem(settings.moved.file, readFile, tableJudge(settings))]],
  reloadsFile: ({ moved: { file } }) => file !== undefined,
  isEnabled: ({ moved: { file } }) => file !== undefined,
  load: () => import('./moved.js'),
};
