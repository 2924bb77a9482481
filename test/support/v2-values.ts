// Shorthands for record interface values, and for translating v2 bodies.
import type { HandleValue, ValueReference } from '../../src/handle/value.js';
import * as schema from '../../src/v2/translation/data.js';
import type { V2Input } from '../../src/v2/translation/data.js';
import { type Steps, runToEnd } from '../../src/time-slicer.js';
import { renderEtag } from '../../src/v2/read.js';
import * as translation from '../../src/v2/translation/record.js';
import type { AutomaticAdmin, WritePlan } from '../../src/v2/translation/record.js';

export type V2Value = ReturnType<typeof translation.toV2Value> extends Steps<infer T> ? T : never;

export const toV2 = (values: readonly HandleValue[]): V2Value[] =>
  runToEnd(translation.visibleValues(values)).map((value) =>
    runToEnd(translation.toV2Value(runToEnd(translation.decodeValue(value)))),
  );

export const readInputs = (body: unknown): V2Input[] => runToEnd(schema.readInputs(body));

export const toRecord = (...given: Parameters<typeof translation.toRecord>): HandleValue[] =>
  runToEnd(translation.toRecord(...given));

export const planWrite = (...given: Parameters<typeof translation.planWrite>): WritePlan =>
  runToEnd(translation.planWrite(...given));

export const recordEtag = (values: readonly HandleValue[]): string => runToEnd(renderEtag(values));

const PERMISSIONS = '011111110011';

export const automaticAdmin: AutomaticAdmin = {
  index: 100,
  admin: { handle: '0.NA/21.T1', index: 300 },
  permissions: PERMISSIONS,
};

export const textValue = (index: number, type: string, value = 'x'): HandleValue => ({
  index,
  type,
  data: { format: 'string', value },
  ttl: 86400,
});

export const adminValue = (index: number, { handle, index: adminIndex }: ValueReference): HandleValue => ({
  index,
  type: 'HS_ADMIN',
  data: { format: 'admin', value: { handle, index: adminIndex, permissions: PERMISSIONS } },
  ttl: 86400,
});

/** Returns the upstream values for a v2 body. */
export const sent = (body: unknown, current: readonly HandleValue[] = []): HandleValue[] =>
  toRecord(readInputs(body), automaticAdmin, current);

/** Reads a value of type X with these members, and by default with text data. */
export const readOne = (members: object): V2Input => {
  const content = 'data' in members || 'parsed_data' in members ? {} : { parsed_data: 'x' };
  return readInputs([{ type: 'X', ...content, ...members }])[0]!;
};

/** Returns each value's index and type. */
export const places = (values: readonly HandleValue[]): string[] =>
  values.map(({ index, type }) => `${index} ${type}`);
