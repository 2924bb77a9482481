// The kinds of repositories.
import type { RecordSource } from '../../upstream/contract.js';
import { DSPACE } from './dspace.js';
import { TEMPLATE } from './template.js';

export const sources: readonly RecordSource[] = [DSPACE, TEMPLATE];
