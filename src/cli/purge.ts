// `purge`: forgets handles in every worker and instance.
import { type Admin, callAdmin } from './call.js';
import { EXIT, Failure } from './exit.js';

export interface PurgeOptions extends Admin {
  prefix?: string;
  all?: boolean;
  soft?: boolean;
}

export async function purge(handles: string[], options: PurgeOptions): Promise<void> {
  const { prefix, all = false, soft = false } = options;
  const targets = [
    ...(handles.length > 0 ? [{ handles }] : []),
    ...(prefix === undefined ? [] : [{ prefix }]),
    ...(all ? [{ all }] : []),
  ];
  const [target, ...more] = targets;
  if (target === undefined || more.length > 0)
    throw new Failure('Give handles, --prefix or --all, and only one of them.', EXIT.usage);
  const done = await callAdmin(options, '/purge', { ...target, soft });
  process.stdout.write(`${JSON.stringify(done)}\n`);
}
