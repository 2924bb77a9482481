// The results of `check-config --probe` as text.
import type { Probe } from '../process/probes.js';
import { type Rows, printable, section } from './terminal.js';

export type ProbeResult = Pick<Probe, 'target' | 'server'> & Awaited<ReturnType<Probe['run']>>;

export const probeText = (results: readonly ProbeResult[]): string =>
  results.map((result) => section(`${NAMES[result.target]} (${result.server})`, rowsOf(result))).join('\n\n');

const NAMES: Record<ProbeResult['target'], string> = {
  upstream: 'Handle server',
  mirror: 'Mirror',
  redis: 'Redis',
  'reverse look-up': 'Reverse look-up',
};

function rowsOf({ ms, version, certificate, failure }: ProbeResult): Rows {
  const rows: [name: string, value: string | undefined][] = [
    ['Probe', failure === undefined ? `succeeded in ${ms} ms` : `failed after ${ms} ms (${failure.code})`],
    ['Cause', failure?.cause],
    ['Remedy', failure?.remedy],
    ['Version', version],
    ['Certificate', certificate && `SHA-256 ${certificate.fingerprint}`],
    ['Expires', certificate?.expires],
  ];
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, printable(value)] as const]));
}
