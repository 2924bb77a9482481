// A Handle server: records and errors are Handle JSON.
import { handleToPath } from '../handle/handle.js';
import { parseAddress } from './exchange.js';
import { readOutcome } from './reply.js';
import { parseMembers } from './response.js';
import type { RecordSource } from './contract.js';

export const HANDLE_SERVER: RecordSource = {
  kind: 'handle-server',
  keepsCase: false,
  holdsPrefixRecords: true,
  forwards: true,
  protocol({ url }) {
    const { basePath } = parseAddress(url);
    const pathOf = (handle: string): string => `${basePath}/api/handles/${handleToPath(handle)}`;
    return {
      read: ({ text }, authoritative) => ({
        method: 'GET',
        path: authoritative ? `${pathOf(text)}?auth=true` : pathOf(text),
      }),
      outcomeOf: readOutcome,
      // Every Handle server sends a response code, even for "not found" or "not my prefix". The site record
      // contains the protocol version (2.11 for Handle.Net 9.3.1), but a gateway may hide it.
      probe: (probeHandle) => ({
        method: 'GET',
        path: pathOf(probeHandle),
        check: parseMembers,
        versionPath: `${basePath}/api/site`,
      }),
    };
  },
};
