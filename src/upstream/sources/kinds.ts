// The kinds of servers. A new kind needs an entry here, a source file, and a name in the configuration.
import { HANDLE_SERVER } from '../handle-server.js';
import type { RecordSource } from '../source.js';
import { DSPACE } from './dspace.js';
import { TEMPLATE } from './template.js';

export const SOURCES: readonly RecordSource[] = [HANDLE_SERVER, DSPACE, TEMPLATE];
