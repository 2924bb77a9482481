// Builds HS_SITE values that name a test server.

/** Returns the port in a server's URL, such as `upstream.referralPorts` allows. */
export const portOf = ({ url }: { url: string }): number => Number(new URL(url).port);

/** Returns an HS_SITE value with index 1 for a server's URL; `attributes`, such as a domain, take precedence. */
export function siteOf(
  server: { url: string },
  { publicKey = {}, protocols = ['HTTP'], attributes = [] as { name: string; value: string }[] } = {},
) {
  const { hostname: address } = new URL(server.url);
  const port = portOf(server);
  const interfaces = protocols.map((protocol) => ({ query: true, admin: false, protocol, port }));
  const servers = [{ serverId: 1, address, publicKey, interfaces }];
  const site = {
    version: 1,
    protocolVersion: '2.11',
    serialNumber: 1,
    primarySite: true,
    multiPrimary: false,
  };
  return { index: 1, type: 'HS_SITE', data: { format: 'site', value: { ...site, attributes, servers } } };
}
