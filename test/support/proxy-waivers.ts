// Recorded Handle server responses that the proxy does not reproduce, with reasons.

const RAW_BYTES = 'node:http refuses request targets with bytes beyond ASCII (400), Jetty reads them wrongly';
const INDEX = 'same status and code; the text names our parameter instead of a Java exception';

export const waivers: Readonly<Record<string, string>> = {
  'create: suffix with raw UTF-8 bytes': RAW_BYTES,
  'resolve: raw UTF-8 in request line': RAW_BYTES,
  'resolve: index=abc': INDEX,
  'resolve: index=1,2': INDEX,
  'resolve: malformed, leading slash only': 'the handle "/" is echoed; the server takes it for an empty one',
  'size: 7000-character suffix':
    'a handle has at most 2048 bytes; a server that looks for a longer one finds none',
  'sessions: GET /api/sessions (no session)':
    'same status; a method that the endpoint does not have is refused here, with the reason in the body',
  'list: pretty & callback':
    'with a login JSONP is 403: any page could load it as a script with the login that the browser remembers',
  'in-server HDLProxy: prefix not homed':
    'an unknown handle is 404 for a browser, whatever server would know better',
};
