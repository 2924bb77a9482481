// Recorded Handle server responses that the proxy does not reproduce: its own response, and the reason.

export interface Waiver {
  status: number;
  /** Part of the body; null if the page is compared by its status only. */
  says: string | null;
  reason: string;
}

const RAW_BYTES: Waiver = {
  status: 400,
  says: '"code":"BAD_REQUEST"',
  reason: 'node:http refuses request targets with bytes beyond ASCII, Jetty reads them wrongly',
};
const INDEX: Waiver = {
  status: 400,
  says: 'index has to be a whole number',
  reason: 'same status and code; the text names our parameter instead of a Java exception',
};

export const waivers: Readonly<Record<string, Waiver>> = {
  'create: suffix with raw UTF-8 bytes': RAW_BYTES,
  'resolve: raw UTF-8 in request line': RAW_BYTES,
  'resolve: index=abc': INDEX,
  'resolve: index=1,2': INDEX,
  'resolve: malformed, leading slash only': {
    status: 400,
    says: '"responseCode":301,"message":"That prefix doesn\'t live here","handle":"/"',
    reason: 'the handle "/" is echoed; the server takes it for an empty one',
  },
  'size: 7000-character suffix': {
    status: 400,
    says: '"code":"HANDLE_TOO_LONG"',
    reason: 'a handle has at most 2048 bytes; a server that looks for a longer one finds none',
  },
  'sessions: GET /api/sessions (no session)': {
    status: 405,
    says: '"message":"Method not allowed: GET"',
    reason:
      'same status; a method that the endpoint does not have is refused here, with the reason in the body',
  },
  'list: pretty & callback': {
    status: 403,
    says: '"JSONP_WITH_LOGIN"',
    reason:
      'with a login JSONP is 403: any page could load it as a script with the login that the browser remembers',
  },
  'in-server HDLProxy: prefix not homed': {
    status: 404,
    says: null,
    reason: 'an unknown handle is 404 for a browser, whatever server would know better',
  },
};
