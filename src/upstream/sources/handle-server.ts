// A Handle server: records and errors are Handle JSON.
import { handleToPath } from '../../handle/handle.js';
import { parseAddress } from '../exchange.js';
import { readOutcome } from '../reply.js';
import { parseMembers } from '../response.js';
import type { RecordSource, SourceSettings } from './source.js';

export function createHandleServerSource({ url }: SourceSettings): RecordSource {
  const { basePath } = parseAddress(url);
  const pathOf = (handle: string): string => `${basePath}/api/handles/${handleToPath(handle)}`;
  return {
    read: ({ text }, authoritative) => ({
      method: 'GET',
      path: authoritative ? `${pathOf(text)}?auth=true` : pathOf(text),
    }),
    outcomeOf: readOutcome,
    // Any Handle server sends a response code for a record, even "not found" or "not my prefix". The site has the version
    // of the protocol (recorded from Handle.Net 9.3.1: 2.11), and a gateway may hide it.
    probe: (probeHandle) => ({
      method: 'GET',
      path: pathOf(probeHandle),
      check: parseMembers,
      versionPath: `${basePath}/api/site`,
    }),
  };
}
