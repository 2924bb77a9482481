// Recorded responses that the demo server does not reproduce, each with the reason.

const RAW_BYTES = 'node:http refuses request targets with bytes beyond ASCII (400), Jetty reads them wrongly';

export const waivers: Readonly<Record<string, string>> = {
  'create: suffix with raw UTF-8 bytes': RAW_BYTES,
  'resolve: raw UTF-8 in request line': RAW_BYTES,
};
