// `traffic`: the limited networks, and what each traffic rule did; ends a limit.
import { type AdminOptions, askAdmin, callAdmin } from './client.js';
import { section } from './terminal.js';

export interface TrafficOptions extends AdminOptions {
  unblock?: string;
  json?: boolean;
}

/** The part of `GET /traffic` that the text shows. */
interface TrafficReport {
  rules: { name: string; matched: number; limited: number; shadowed: number }[];
  blocked: { network: string; until: string; reason: string }[];
}

export async function traffic(options: TrafficOptions): Promise<void> {
  const { unblock, json = false } = options;
  if (unblock !== undefined) {
    await callAdmin(options, `/traffic/blocked/${encodeURIComponent(unblock)}`, { method: 'DELETE' });
    process.stdout.write(`No longer limited: ${unblock}\n`);
    return;
  }
  const report = (await askAdmin(options, '/traffic')) as TrafficReport;
  process.stdout.write(`${json ? JSON.stringify(report) : trafficText(report)}\n`);
}

function trafficText({ blocked, rules }: TrafficReport): string {
  const networks = blocked.map(
    ({ network, until, reason }) => [network, `until ${until}, ${reason}`] as const,
  );
  const used = rules.map(
    ({ name, ...did }) =>
      [name, `${did.matched} matched, ${did.limited} limited, ${did.shadowed} shadowed`] as const,
  );
  return `${section('Limited networks', networks)}\n\n${section('Rules (since the start)', used)}`;
}
