// Answers for one handle: a redirect where it leads somewhere, else its page, JSON or list of locations.
import type { Request, Response } from 'express';
import { selects } from '../handle/value.js';
import { handleToPath } from '../handle/handle.js';
import { bodyOfEntry, render } from '../http/body.js';
import { cacheHeaders } from '../http/cache-headers.js';
import { contextOf } from '../http/context.js';
import { answerRecord, resultOf } from '../record/resolve.js';
import type { FromEntry } from '../resolver/resolution.js';
import { prefersJson } from './accept.js';
import { escapeUnsafe } from './address.js';
import { type Followed, followAliases } from './alias.js';
import { type Asked, readAsked } from './query.js';
import type { RoomDeps } from './deps.js';
import { layOut } from '../html/layout.js';
import { locationList } from './location-list.js';
import { notFound, refused, sendProblem } from './problems.js';
import { recordPage } from './record-page.js';
import { HTML_TYPE, sendRedirect, sendText } from '../html/send-page.js';
import { type Target, findTarget } from './target.js';
import { valuesOf } from './values.js';

interface Asking {
  handle: string;
  parameters: URLSearchParams;
  deps: RoomDeps;
}

/** A question whose answer is known: `at` is the record that is shown, behind all aliases. */
interface Known {
  asked: Asked;
  followed: Followed;
  at: { handle: string; resolution: FromEntry };
  deps: RoomDeps;
}

export async function answerHandle(req: Request, res: Response, asking: Asking): Promise<void> {
  const { handle, parameters, deps } = asking;
  contextOf(res).handle = handle;
  const asked = readAsked(parameters);
  if (asked.show === 'api') await answerRecord(req, res, { handle, question: asked, deps });
  else await answerBrowser(req, res, { handle, asked, deps });
}

async function answerBrowser(
  req: Request,
  res: Response,
  { handle, asked, deps }: { handle: string; asked: Asked; deps: RoomDeps },
): Promise<void> {
  const first = { handle, resolution: await deps.resolve(handle, asked) };
  contextOf(res).result = resultOf(first.resolution, asked);
  const followed = await follow(first, asked, deps);
  const { end } = followed;
  if (end.resolution.kind === 'refused') {
    await sendProblem(req, res, { problem: refused(end.handle, end.resolution.refused), deps });
    return;
  }
  if (end.resolution.stale !== undefined) deps.onStale(end.resolution.stale);
  const known = { asked, followed, at: { handle: end.handle, resolution: end.resolution }, deps };
  if (end.resolution.entry.kind !== 'not-found') await answerKnown(req, res, known);
  else await sendProblem(req, res, { problem: notFound(handle, end), deps, headers: headersOf(known) });
}

async function follow(first: Followed['end'], asked: Asked, deps: RoomDeps): Promise<Followed> {
  if (!asked.followAliases) return { end: first, aliases: [], shortest: undefined };
  const resolve = (handle: string): ReturnType<RoomDeps['resolve']> => deps.resolve(handle, asked);
  return followAliases(first, { resolve, keyOf: deps.keyOf });
}

async function answerKnown(req: Request, res: Response, known: Known): Promise<void> {
  const { asked, followed } = known;
  const isAlias = asked.show === 'redirect' && followed.aliases.length > 0;
  if (asked.show === 'urls') await sendLocations(req, res, known);
  else if (isAlias && req.method !== 'POST') redirectToAlias(res, known);
  else await redirectOrShow(req, res, known);
}

/** A redirect to our own address of the handle at the end of all aliases, which tools then remember. */
function redirectToAlias(res: Response, known: Known): void {
  const { query } = contextOf(res).target;
  const path = `/${handleToPath(known.at.handle)}`;
  // What came as raw bytes is written as RFC 3986 wants it.
  const url = query === '' ? path : `${path}?${escapeUnsafe(Buffer.from(query, 'latin1').toString())}`;
  const told = headersOf(known);
  sendRedirect(res, { status: 301, url, told, expires: expiresOf(known), variesByAccept: false });
}

async function redirectOrShow(req: Request, res: Response, known: Known): Promise<void> {
  const { asked, at, deps } = known;
  const values = valuesOf(at.resolution.entry);
  const { accept } = req.headers;
  const target = findTarget({ handle: at.handle, values, asked, accept }, deps.target);
  const { address } = target;
  if (asked.show === 'redirect' && address?.ok === true)
    redirectTo(req, res, { known, target, url: address.url });
  else if (prefersJson(accept)) await sendRecord(req, res, known);
  else await sendRecordPage(req, res, { known, target });
}

function redirectTo(
  req: Request,
  res: Response,
  { known, target, url }: { known: Known; target: Target; url: string },
): void {
  const { at, deps } = known;
  const { variesByAccept } = target;
  const told = headersOf(known);
  // A client may keep what was drawn for it, but no cache may hand its lot to everybody behind it.
  if (target.isDrawn) told['Cache-Control'] = (told['Cache-Control'] ?? '').replace('public', 'private');
  // RFC 9110 section 15.4: HTTP/1.0 knows no 303, 307 and 308.
  const status = req.httpVersion === '1.0' && target.status > 302 ? 302 : target.status;
  const made = sendRedirect(res, { status, url, told, expires: expiresOf(known), variesByAccept });
  if (isPreparable(target) && isPlainHit(req, res, known))
    deps.onHit({ target: req.url, handle: at.handle, entry: at.resolution.entry, status, made });
}

/** The redirect depends on nothing but target and entry. */
const isPreparable = ({ isDrawn, variesByAccept, status }: Target): boolean =>
  !isDrawn && !variesByAccept && status <= 302;

const isPlainHit = (req: Request, res: Response, { at }: Known): boolean =>
  req.method !== 'POST' && contextOf(res).result === 'hit' && at.resolution.from === 'memory';

async function sendRecordPage(
  req: Request,
  res: Response,
  { known, target }: { known: Known; target: Target },
): Promise<void> {
  const { asked, followed, at, deps } = known;
  const page = recordPage({
    handle: at.handle,
    aliases: followed.aliases,
    values: valuesOf(at.resolution.entry).filter(selects(asked)),
    target,
    resolution: at.resolution,
    authoritative: asked.authoritative,
    now: deps.now(),
  });
  // A person who comes back to a page wants it as it is now: it is asked for again, and usually a 304.
  const headers = { ...headersOf(known), ...deps.pageHeaders, 'Cache-Control': 'no-cache' };
  const text = layOut(page, deps.house);
  await send(req, res, { contentType: HTML_TYPE, text, headers, variesByAccept: true, deps });
}

async function sendRecord(req: Request, res: Response, known: Known): Promise<void> {
  const { asked, at, deps } = known;
  const { status, json } = bodyOfEntry(at.resolution.entry, at.handle, asked);
  const { contentType, bytes } = render(json, contextOf(res).format);
  const text = bytes.toString();
  await send(req, res, { status, contentType, text, headers: headersOf(known), variesByAccept: true, deps });
}

async function sendLocations(req: Request, res: Response, known: Known): Promise<void> {
  const { asked, at, deps } = known;
  const values = valuesOf(at.resolution.entry).filter(selects(asked));
  const text = locationList(values, { handle: at.handle, readLocations: deps.target.readLocations });
  const contentType = 'text/xml;charset=utf-8';
  const headers = { ...headersOf(known), ...deps.pageHeaders };
  await send(req, res, { contentType, text, headers, variesByAccept: false, deps });
}

interface Content {
  status?: number;
  contentType: string;
  text: string;
  headers: Record<string, string>;
  variesByAccept: boolean;
  deps: RoomDeps;
}

const send = (req: Request, res: Response, { status = 200, deps, ...content }: Content): Promise<void> =>
  sendText(req, res, { status, ...content, gzipMinBytes: deps.gzipMinBytes });

/** What caches are told: nothing that was concluded from several records lives longer than the first to go. */
function headersOf({ asked, followed, at, deps }: Known): Record<string, string> {
  return cacheHeaders({
    resolution: followed.shortest ?? at.resolution,
    authoritative: asked.authoritative,
    now: deps.now(),
    clientMaxAgeMs: deps.clientMaxAgeMs,
  });
}

/** The end of the life that is left (RFC 9111 section 5.3): HDLProxy counts a whole one from each answer. */
function expiresOf({ asked, followed, at, deps }: Known): string {
  const { entry, stale } = followed.shortest ?? at.resolution;
  const isOver = asked.authoritative || stale !== undefined;
  return new Date(isOver ? deps.now() : entry.staleAt).toUTCString();
}
