// Location choices that deliberately differ from the HDLProxy recordings, with reasons.

const BROKEN = 'a broken value is left out: HDLProxy responds with 500';
const QUOTE = 'a quote in rel is escaped: at HDLProxy it ends the parameter';
const OTHER_SERVER = 'the Handle server says that it does not have the prefix; no other is asked';
const NOT_CONFIGURED = 'a setting of HDLProxy that this proxy does not have';
const ENDPOINT = 'an endpoint of the API: test/redirect has redirects and pages';
const FILE = 'a file of HDLProxy';

export const locationWaivers: Readonly<Record<string, string>> = {
  'loc xml: unclosed tag': BROKEN,
  'loc xml: unclosed tag, no URL value': BROKEN,
  'loc xml: unclosed tag, HEAD': BROKEN,
  'several: first value broken, second good': BROKEN,
  'prefix: HS_NAMESPACE empty, showurls': BROKEN,
  'template: href empty and href_template': 'an empty address is no redirect: the page is shown',
  'link: every attribute': QUOTE,
  'link: HEAD': QUOTE,
  'urlappend: link': QUOTE,
  'headers: 10320/headers and a URL value': 'a record cannot set Location',
  'headers: HEAD': 'a record cannot set Location',
  'headers: with Origin': 'a record cannot set Location',
  'Accept: application/json, prefix whose server is down': OTHER_SERVER,
  'configured (GeoIP stand-in, X-Forwarded-For trusted): addresses: X-Forwarded-For garbage':
    'an address that is none matches nothing: HDLProxy responds with 500',
  'configured (GeoIP stand-in, X-Forwarded-For trusted): X-Forwarded-For with two addresses: the first':
    'the address before the trusted proxies counts: every client can write what stands further left',
  'configured (GeoIP stand-in, X-Forwarded-For trusted): X-Forwarded-For empty':
    'an empty X-Forwarded-For of a trusted proxy names no client',
  'configured (GeoIP stand-in, X-Forwarded-For trusted): locatt shortcut lang=de': NOT_CONFIGURED,
  'configured (GeoIP stand-in, X-Forwarded-For trusted): alias with handle_link_prefix': NOT_CONFIGURED,
  'path: HDLProxy: /static/': FILE,
  'path: HDLProxy: /help.html': FILE,
  'path: server: /help.html': FILE,
  'path: HDLProxy: /api/prefixes': ENDPOINT,
  'path: HDLProxy: /api/sessions': ENDPOINT,
  'path: HDLProxy: /api/verifications/x': ENDPOINT,
  'path: HDLProxy: TRACE /api/foo': ENDPOINT,
};
