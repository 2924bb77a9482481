// Valid requests and responses from which the fuzz tests start.

const HOST = 'Host: proxy.example\r\n';
const body = (text: string): string =>
  `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const VALUES = '[{"index":1,"type":"URL","data":{"format":"string","value":"https://example.org/new"}}]';
const V2_VALUES = '[{"type":"URL","parsed_data":"https://example.org/new"}]';
const AUTHORIZATION = 'Authorization: Basic MzAwJTNBMjEuVDExOTk4L1VTRVIwMTp3cm9uZw==\r\n';

/** Requests of every kind, except writes that the demo server would execute. */
export const REQUESTS: readonly Buffer[] = [
  `GET /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}\r\n`,
  `GET /api/handles/21.T11998/PAGE?index=1&type=URL&pretty&callback=f HTTP/1.1\r\n${HOST}Accept: */*\r\n\r\n`,
  `GET /api/handles/21.T11998%2Fp%61ge?auth=true HTTP/1.1\r\n${HOST}Accept-Encoding: gzip, br\r\n\r\n`,
  `GET /api/handles/21.T11998/nobody?publicOnly=false HTTP/1.1\r\n${HOST}Origin: https://evil.example\r\n\r\n`,
  `HEAD /api/handles/21.T11998/demo HTTP/1.1\r\n${HOST}If-None-Match: "x", W/"y"\r\n\r\n`,
  `GET http://proxy.example/api/handles/21.T11998/demo HTTP/1.1\r\n${HOST}X-Forwarded-Host: evil.example\r\n\r\n`,
  `OPTIONS /api/handles/21.T11998/demo HTTP/1.1\r\n${HOST}Access-Control-Request-Method: PUT\r\n\r\n`,
  `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`,
  `PUT /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}${AUTHORIZATION}${body(VALUES)}`,
  `PUT /api/handles/21.T11998/page?overwrite=true HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n5\r\n[{"in\r\n3;a=b\r\ndex\r\n0\r\n\r\n`,
  `POST /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}${body(VALUES)}`,
  `DELETE /api/handles/21.T11998/page?index=1 HTTP/1.1\r\n${HOST}${AUTHORIZATION}\r\n`,
  `GET /api/handles?prefix=21.T11998&page=0&pageSize=2 HTTP/1.1\r\n${HOST}${AUTHORIZATION}\r\n`,
  `POST /api/sessions HTTP/1.1\r\n${HOST}${body('{}')}`,
  `GET /api/site HTTP/1.1\r\n${HOST}Cookie: a=b; c=d\r\n\r\n`,
  `GET /api/v2/handles/21.T11998/page HTTP/1.1\r\n${HOST}Accept: application/json\r\n\r\n`,
  `PUT /api/v2/handles/21.T11998/page HTTP/1.1\r\n${HOST}${AUTHORIZATION}If-None-Match: *\r\n${body(V2_VALUES)}`,
  `POST /api/v2/handles/21.T11998?prefix=A&suffix=B HTTP/1.1\r\n${HOST}${body(V2_VALUES)}`,
  `GET /api/v2/handles/21.T11998/?URL=*&limit=2 HTTP/1.1\r\n${HOST}${AUTHORIZATION}\r\n`,
  `GET /21.T11998/page HTTP/1.1\r\n${HOST}Accept: text/html\r\n\r\n`,
  `GET /21.T11998/page?noredirect&urlappend=%2Fx&locatt=id:1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}Range: bytes=0-1\r\n\r\n`,
  `GET /api/handles/21.T11998/page HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
].map((text) => Buffer.from(text, 'latin1'));

/** A request after which the server closes the connection. */
export const LAST = Buffer.from(`GET / HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);

export const marker = (handle: string): string => `https://example.org/${handle}`;

const recordOf = (handle: string, more = ''): string =>
  JSON.stringify({
    responseCode: 1,
    handle,
    values: [
      { index: 1, type: 'URL', data: { format: 'string', value: marker(handle) }, ttl: 86400 },
      { index: 100, type: 'HS_ADMIN', data: { format: 'admin', value: { handle: '0.NA/21.T1' } }, ttl: 60 },
    ],
  }).replace(/}$/, `${more}}`);

const JSON_HEAD = 'Content-Type: application/json;charset=UTF-8\r\n';
const answer = (status: string, text: string, more = JSON_HEAD): string =>
  `HTTP/1.1 ${status}\r\n${more}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
const inChunks = (text: string): string =>
  (text.match(/[^]{1,40}/g) ?? []).map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('') +
  '0\r\n\r\n';

/** Returns the correct response. */
export const goodAnswer = (handle: string): Buffer => Buffer.from(answer('200 OK', recordOf(handle)));

/** Handle in a record that belongs to a different handle. */
export const STRANGER = '21.T11998/stranger';

/** Returns responses that a Handle server, or a different server at its address, may send. */
export const answersFor = (handle: string): readonly Buffer[] =>
  [
    answer('200 OK', recordOf(handle)),
    answer(
      '200 OK',
      recordOf(handle, ',"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":1}}'),
    ),
    `HTTP/1.1 200 OK\r\n${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n${inChunks(recordOf(handle))}`,
    `HTTP/1.1 200 OK\r\n${JSON_HEAD}\r\n${recordOf(handle)}`,
    answer('200 OK', recordOf(STRANGER)),
    answer('200 OK', `{"responseCode":200,"handle":"${handle}"}`),
    answer('404 Not Found', `{"responseCode":100,"handle":"${handle}"}`),
    answer(
      '401 Unauthorized',
      '{"responseCode":402}',
      `${JSON_HEAD}WWW-Authenticate: Basic realm="handle"\r\n`,
    ),
    answer('500 Internal Server Error', '{"responseCode":2,"message":"Error"}'),
    answer('503 Service Unavailable', '<html>busy</html>', 'Content-Type: text/html\r\nRetry-After: 1\r\n'),
    answer('302 Found', '', 'Location: http://evil.example/\r\nSet-Cookie: a=b\r\n'),
    answer('204 No Content', '', ''),
  ].map((text) => Buffer.from(text));
