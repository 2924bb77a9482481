// The operator's calls on something that does nothing, for tests of the listener alone.
import { type Operations, createOperations } from '../../src/admin/operations.js';

export const noOperations: Operations = createOperations(() => [], Date.now);
