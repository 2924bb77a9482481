// The keys of what people meet in a browser: redirects, and the pages of records and errors.
import { list, reloadable, section, spelled, text, yesOrNo } from './fields.js';

const readHost = (given: string): string | undefined => {
  const host = given.toLowerCase();
  return /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$|^\[[0-9a-f:.]+\]$/.test(host) ? host : undefined;
};

export const redirect = section({
  enabled: yesOrNo(true).describe(
    'Whether `/<handle>` leads to the object and pages show records (`true` or `false`).',
  ),
  allowedHosts: reloadable(
    list({ allowed: 'host names, with `*.` in front for all below', read: readHost })
      .nullable()
      .default(null)
      .describe(
        'Hosts that may be redirected to, such as `example.org,*.example.org`, separated by commas; none: any.',
      ),
  ),
});

const readWebAddress = (given: string): string | undefined => {
  if (!URL.canParse(given)) return undefined;
  const { protocol, href } = new URL(given);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
};

const webAddress = spelled({ allowed: 'an http:// or https:// address', read: readWebAddress });

const readImage = (given: string): string | undefined =>
  /^data:image\/[a-z+.-]+[;,]/.test(given) ? given : readWebAddress(given);

const line = text({ allowed: 'a line of text', pattern: /^[^\0-\x1f]{1,500}$/ });

export const page = reloadable(
  section({
    title: line.prefault('Handle resolver').describe('Name of the service, on every page.'),
    logoUrl: spelled({ allowed: 'an http://, https:// or data:image/ address', read: readImage })
      .nullable()
      .default(null)
      .describe('Address of a logo beside the name, 36 pixels high; `data:image/…` needs no other server.'),
    footer: line
      .nullable()
      .default(null)
      .describe('Line at the foot of every page, such as who runs the service.'),
    footerUrl: webAddress.nullable().default(null).describe('Address that `page.footer` links to.'),
  }),
);
