// Writes a small country database in the MaxMind format, version 2.0.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './folder.js';

/** Encodes a control byte; a type above 7 needs a second byte. */
const control = (type: number, size: number): number[] =>
  type > 7 ? [size, type - 7] : [(type << 5) | size];
const text = (value: string): number[] => [...control(2, value.length), ...Buffer.from(value)];
const map = (pairs: Record<string, number[]>): number[] => [
  ...control(7, Object.keys(pairs).length),
  ...Object.entries(pairs).flatMap(([key, value]) => [...text(key), ...value]),
];
const uint16 = (value: number): number[] => [...control(5, 2), value >> 8, value & 0xff];
const uint32 = (value: number): number[] => [
  ...control(6, 4),
  ...Buffer.from(value.toString(16).padStart(8, '0'), 'hex'),
];

/** A binary tree node. A child is a node, or the country of all addresses below. */
type Node = (Node | string | undefined)[];

function insert(root: Node, network: string, country: string): void {
  const [address = '', length] = network.split('/');
  const bits = address
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('')
    .slice(0, Number(length));
  const before = Array.from(Buffer.from(bits.slice(0, -1)), (code) => code - 48);
  const last = before.reduce((node, bit) => (node[bit] ??= []) as Node, root);
  last[Number(bits.at(-1))] = country;
}

function databaseOf(countries: Record<string, string>): Buffer {
  const root: Node = [];
  for (const [network, country] of Object.entries(countries)) insert(root, network, country);
  const nodes: Node[] = [root];
  for (const node of nodes) nodes.push(...node.filter((child): child is Node => Array.isArray(child)));
  const data: number[] = [];
  const recordOf = (child: Node[number]): number => {
    if (child === undefined) return nodes.length;
    if (Array.isArray(child)) return nodes.indexOf(child);
    const at = data.length;
    data.push(...map({ country: map({ iso_code: text(child) }) }));
    return nodes.length + 16 + at;
  };
  const tree = nodes.flatMap(([left, right]) =>
    [left, right].map(recordOf).flatMap((record) => [record >> 16, (record >> 8) & 0xff, record & 0xff]),
  );
  const metadata = map({
    binary_format_major_version: uint16(2),
    binary_format_minor_version: uint16(0),
    build_epoch: [...control(9, 1), 1],
    database_type: text('Country'),
    description: map({ en: text('test') }),
    ip_version: uint16(4),
    languages: control(11, 0),
    node_count: uint32(nodes.length),
    record_size: uint16(24),
  });
  const marker = [0xab, 0xcd, 0xef, ...Buffer.from('MaxMind.com')];
  return Buffer.from([...tree, ...Array<number>(16).fill(0), ...data, ...marker, ...metadata]);
}

/** Writes countries by network, for example `192.0.2.0/24`, and returns the file's path. */
export function writeCountryDatabase(
  countries: Record<string, string>,
  path = join(newFolder(), 'country.mmdb'),
): string {
  writeFileSync(path, databaseOf(countries));
  return path;
}
