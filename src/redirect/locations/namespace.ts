// Reads the HS_NAMESPACE value of a prefix record: the lists of the prefix, and whether it is active.
import { MAX_HANDLE_BYTES } from '../../handle/handle.js';
import type { HandleValue } from '../../handle/value.js';
import { runToEnd } from '../../time-slicer.js';
import { isOfType, textOf } from '../values.js';
import { isYes } from './location-list.js';
import { scanDocument } from './scan.js';

export interface Namespace {
  /** Handles whose lists take part in every redirect of the prefix. */
  listHandles: readonly string[];
  /** False when those of the global namespace, 0.NA/0.NA, are refused. */
  usesGlobal: boolean;
  isInactive: boolean;
  /** Why it is inactive, in the words of its operator; empty for none. */
  statusMessage: string;
  /** Whom to write to about handles of the prefix; empty for none. */
  contact: string;
}

export const NO_NAMESPACE: Namespace = {
  listHandles: [],
  usesGlobal: true,
  isInactive: false,
  statusMessage: '',
  contact: '',
};

/** A longer one is taken for broken: it is read for each redirect of its prefix. Real ones have less than 1,000 characters. */
const MAX_CHARS = 64 * 1024;
/** As many as a list may include. */
const MAX_LIST_HANDLES = 200;

/** Of what is shown on a page. */
const MAX_SHOWN_CHARS = 500;

export const GLOBAL_NAMESPACE = '0.NA/0.NA';

/** The value with the lowest index counts. A broken or empty one is none; HDLProxy responds with 500 to an empty one. */
export function namespaceIn(values: readonly HandleValue[]): Namespace {
  const [first] = values
    .filter((value) => isOfType(value, 'HS_NAMESPACE'))
    .sort((one, other) => one.index - other.index);
  const text = (first && textOf(first)) ?? '';
  const children = (text.length <= MAX_CHARS && runToEnd(scanDocument(text))?.children) || [];
  const locs = children.filter(({ name }) => name === 'locs');
  const shown = (wanted: string): string =>
    (children.find(({ name }) => name === wanted)?.text ?? '').trim().slice(0, MAX_SHOWN_CHARS);
  return {
    listHandles: locs
      .map((each) => each.text.trim())
      .filter((handle) => handle !== '' && handle.length <= MAX_HANDLE_BYTES)
      .slice(0, MAX_LIST_HANDLES),
    usesGlobal: !locs.some(({ attributes }) => isYes(attributes.get('no_nslocs'))),
    isInactive: children.some((each) => each.name === 'status' && each.text === 'inactive'),
    statusMessage: shown('statusmsg'),
    contact: shown('contact'),
  };
}

/** `0.NA/21.T11998` for `21.T11998/abc`. */
export const prefixHandleOf = (handle: string): string => `0.NA/${handle.split('/', 1)[0] ?? ''}`;

/** `includeNamespace` and `overridePrefix` may leave out `0.NA/` (recording "include: includeNamespace without 0.NA/"). */
export const toPrefixHandle = (name: string): string => (/^0\.NA\//i.test(name) ? name : `0.NA/${name}`);
