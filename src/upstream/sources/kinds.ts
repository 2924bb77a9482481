// Registry of server kinds. A new kind needs an entry here, a source file, and a name in the configuration.
import type { ServerConfig } from '../../config/upstream-servers.js';
import { createDspaceSource } from './dspace.js';
import { createHandleServerSource } from './handle-server.js';
import type { RecordSource, SourceSettings } from './source.js';
import { createTemplateSource } from './template.js';

const KINDS: Record<ServerConfig['kind'], (settings: SourceSettings) => RecordSource> = {
  'handle-server': createHandleServerSource,
  dspace: createDspaceSource,
  template: createTemplateSource,
};

export const createSource = ({
  kind,
  ...settings
}: SourceSettings & Pick<ServerConfig, 'kind'>): RecordSource => KINDS[kind](settings);
