// Recorded answers that the demo server does not give, each with the reason why not.

const RAW_BYTES = 'node:http refuses request targets with bytes beyond ASCII (400), Jetty reads them wrongly';

export const waivers: Readonly<Record<string, string>> = {
  'create: suffix with raw UTF-8 bytes': RAW_BYTES,
  'resolve: raw UTF-8 in request line': RAW_BYTES,
};
