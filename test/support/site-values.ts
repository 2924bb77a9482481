// Builds HS_SITE values that name a test server.

/** Returns an HS_SITE value with index 1 for a server's URL. */
export function siteOf({ url }: { url: string }, { publicKey = {}, protocols = ['HTTP'] } = {}) {
  const { hostname: address, port: portText } = new URL(url);
  const port = Number(portText);
  const interfaces = protocols.map((protocol) => ({ query: true, admin: false, protocol, port }));
  const servers = [{ serverId: 1, address, publicKey, interfaces }];
  const site = {
    version: 1,
    protocolVersion: '2.11',
    serialNumber: 1,
    primarySite: true,
    multiPrimary: false,
  };
  return { index: 1, type: 'HS_SITE', data: { format: 'site', value: { ...site, servers } } };
}
