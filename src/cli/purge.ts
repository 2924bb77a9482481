// `purge`: invalidates handles in every worker and instance.
import { type AdminOptions, callAdmin } from './client.js';
import { EXIT, Failure } from './failure.js';

export interface PurgeOptions extends AdminOptions {
  prefix?: string;
  all?: boolean;
  soft?: boolean;
}

export async function purge(handles: string[], options: PurgeOptions): Promise<void> {
  const { prefix, all = false, soft = false } = options;
  const selections = [
    ...(handles.length > 0 ? [{ handles }] : []),
    ...(prefix === undefined ? [] : [{ prefix }]),
    ...(all ? [{ all }] : []),
  ];
  const [selection, ...others] = selections;
  if (selection === undefined || others.length > 0)
    throw new Failure('Give either handles, --prefix or --all.', EXIT.usage);
  const report = await callAdmin(options, '/purge', { ...selection, soft });
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
