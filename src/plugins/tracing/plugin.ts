// Traces: a span for each request and each upstream read, in the caller's W3C trace context.
import type { Plugin } from '../../plugin.js';
import { readWebUrl } from '../../config/addresses.js';
import { type SectionsOf, normalised, wholeNumber } from '../../config/fields.js';
import type { Config } from '../../config/schema.js';

const SECTIONS = {
  tracing: {
    endpoint: normalised({
      allowed: 'the whole http:// or https:// address, such as http://collector:4318/v1/traces',
      read: (given) => readWebUrl(given) && given,
    })
      .optional()
      .describe(
        'URL to which traces are exported (OTLP over HTTP as JSON), such as `http://collector:4318/v1/traces`; without it tracing is disabled.',
      ),
    samplePercent: wholeNumber({ min: 0, max: 100, byDefault: 100 }).describe(
      'Percentage of requests to trace, unless the `traceparent` of a trusted proxy decides.',
    ),
  },
};

export type TracingConfig = Config & SectionsOf<typeof SECTIONS>;

export const tracing: Plugin<TracingConfig> = {
  name: 'tracing',
  sections: SECTIONS,
  isEnabled: ({ tracing: { endpoint } }) => endpoint !== undefined,
  load: () => import('./tracing.js'),
};
