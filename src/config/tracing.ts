// The configuration keys of traces.
import { section, spelled, wholeNumber } from './fields.js';

export const tracing = section({
  endpoint: spelled({
    allowed: 'the whole http:// or https:// address, such as http://collector:4318/v1/traces',
    read: (given) => (URL.canParse(given) && /^https?:$/.test(new URL(given).protocol) ? given : undefined),
  })
    .nullable()
    .default(null)
    .describe(
      'Where traces are sent (OTLP over HTTP as JSON), such as `http://collector:4318/v1/traces`; none: there are none.',
    ),
  samplePercent: wholeNumber({ min: 0, max: 100, byDefault: 100 }).describe(
    'How many of a hundred requests are traced, unless their `traceparent` has decided.',
  ),
});
