// `resolve`: the answer for a handle, and what the cache knows of it.
import { handleToPath } from '../handle/handle.js';
import { type Admin, callAdmin, reach } from './call.js';
import { Failure } from './exit.js';
import { printableLines } from './printable.js';
import { type Answered, readAnswered } from './record.js';
import { type Copy, copyLine, recordLines, recordTable } from './record-table.js';

export interface ResolveOptions extends Admin {
  proxy: string;
  direct?: string;
  json?: boolean;
  plain?: boolean;
}

export async function resolve(handle: string, options: ResolveOptions): Promise<void> {
  const answer = await reach(`${options.direct ?? options.proxy}/api/handles/${handleToPath(handle)}`);
  process.stdout.write(`${inForm(await answer.text(), options)}\n`);
  process.stderr.write(`${answer.status} · ${answer.headers.get('cache-status') ?? 'no Cache-Status'}\n`);
  if (options.direct === undefined) await tellCopies(handle, options);
  if (!answer.ok) throw new Failure(`the answer is ${answer.status}`);
}

/** A table on a terminal; in a pipe, where a program reads on, the answer as it came. */
function inForm(text: string, { json = false, plain = false }: ResolveOptions): string {
  const { isTTY, columns } = process.stdout;
  const answered: Answered | undefined = json ? undefined : readAnswered(text);
  if (answered !== undefined && plain) return recordLines(answered);
  if (answered !== undefined && isTTY) return recordTable(answered, columns);
  return isTTY ? printableLines(text.trimEnd()) : text.trimEnd();
}

/** An admin listener that cannot be reached is no failure: whoever resolves need not be its operator. */
async function tellCopies(handle: string, at: Admin): Promise<void> {
  try {
    const { copies } = (await callAdmin(at, `/cache?handle=${encodeURIComponent(handle)}`)) as {
      copies: Copy[];
    };
    const lines = copies.length === 0 ? ['not in the cache'] : copies.map(copyLine);
    process.stderr.write(`${lines.join('\n')}\n`);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`what the cache holds is not known: ${error.message}\n`);
  }
}
