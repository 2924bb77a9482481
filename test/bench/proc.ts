// Reads the resource usage of a server and its descendants from /proc.
import { readFileSync, readdirSync } from 'node:fs';

/** USER_HZ, which is 100 on every Linux platform of Node. */
const TICKS_PER_SECOND = 100;

interface Member {
  pid: number;
  parent: number;
  ticks: number;
}

export const cpuSeconds = (pid: number): number =>
  sum(family(pid).map(({ ticks }) => ticks)) / TICKS_PER_SECOND;

export const rssBytes = (pid: number): number => sum(family(pid).map((member) => rssOf(member.pid)));

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

function rssOf(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readOf(pid, 'status'))?.[1];
  return Number(kib ?? 0) * 1024;
}

function family(pid: number): Member[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readMember(Number(name)) ?? []);
  const pids = new Set([pid]);
  // Repeats until no descendant is added, because a child may precede its parent in the list.
  for (let before = 0; before !== pids.size;) {
    before = pids.size;
    for (const member of all) if (pids.has(member.parent)) pids.add(member.pid);
  }
  return all.filter((member) => pids.has(member.pid));
}

function readMember(pid: number): Member | undefined {
  const text = readOf(pid, 'stat');
  if (text === '') return undefined;
  // The name in parentheses may contain spaces; state and parent PID follow.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return { pid, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
}

/** Returns an empty string if the process has exited. */
function readOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
