// Creates the admission with traffic rules alone, without the app.
import { partial } from './partial.js';
import type { Host } from '../../src/host.js';
import { createHooks } from '../../src/hooks.js';
import { type Admission, createAdmission } from '../../src/app/admission.js';
import { handleRef } from '../../src/handle/handle.js';
import { createTrafficPolicy } from '../../src/plugins/traffic/policy.js';
import type { TrafficRule } from '../../src/plugins/traffic/plugin.js';
import type { TakeTokens } from '../../src/plugins/traffic/token-bucket.js';
import { testContext } from './context.js';

export function admissionWith(rules: TrafficRule[], takeTokens: TakeTokens): Admission {
  const context = testContext();
  const parts = {
    resolver: { hasFresh: () => false },
    refOf: (text: string) => handleRef(text, false),
  };
  const host = partial<Host>({ ...context, ...parts });
  const admission = [() => createTrafficPolicy(rules, host, takeTokens)];
  return createAdmission({ ...createHooks(), admission }, () => false);
}
