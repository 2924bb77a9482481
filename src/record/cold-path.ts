// Plain questions that no prepared answer is there for: asked and answered without Express, for a third of its price.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { FromEntry } from '../resolver/resolution.js';
import { type RequestContext, contextOf, putContext } from '../http/context.js';
import { withCors } from '../http/cors.js';
import { type PlainQuestion, readPlainQuestion } from './plain-question.js';
import { type Wanted, outgoing } from '../http/reply.js';
import type { RequestLog } from '../http/request-log.js';
import { type Asking, type ResolveDeps, replyFromEntry, resultOf, tellOfAnswer } from './resolve.js';
import type { AskedHeaders, ScanHeaders } from '../http/fast-headers.js';
import { createWire, linesOf } from '../http/raw-response.js';

export interface ColdPathDeps extends Omit<ResolveDeps, 'passThrough'> {
  requestLog: RequestLog;
  scanHeaders: ScanHeaders;
  /** The pipeline of Express, for what turns out to need it: refusals and failures. */
  longWay: RequestListener;
}

/** True when the request is being answered; otherwise nothing was done to it. */
export type ColdPath = (req: IncomingMessage, res: ServerResponse) => boolean;

export function createColdPath(deps: ColdPathDeps): ColdPath {
  const wire = createWire();

  async function send(res: ServerResponse, resolution: FromEntry, going: Going): Promise<void> {
    const { target, isHead, asking, wanted } = going;
    const reply = replyFromEntry(resolution, asking);
    const { status, headers, body, made } = await outgoing(reply, wanted);
    const text = isHead || body === undefined ? '' : body.toString('latin1');
    const lines = linesOf(withCors(headers, wanted.asked.origin));
    wire(res, { status, lines, body: text }, deps.now());
    tellOfAnswer(target, { resolution, status: reply.status, made }, asking);
  }

  /** A failure or a refusal has its form from the pipeline, which asks nobody again. */
  async function answer(req: IncomingMessage, res: ServerResponse, going: Going): Promise<void> {
    const { handle, question } = going.asking;
    const context = contextOf(res);
    context.begun = deps.resolve(handle, question);
    try {
      const resolution = await context.begun;
      if (resolution.kind === 'entry') {
        context.result = resultOf(resolution, question);
        await send(res, resolution, going);
        return;
      }
    } catch {
      // Told by the pipeline.
    }
    deps.longWay(req, res);
  }

  return function coldPath(req, res) {
    const { method, url } = req;
    if ((method !== 'GET' && method !== 'HEAD') || url === undefined) return false;
    const asked = deps.scanHeaders(req.rawHeaders);
    const plain = asked && readPlainQuestion(url);
    if (asked === undefined || plain === undefined) return false;
    putContext(res, contextFor(plain));
    deps.requestLog(req, res);
    void answer(req, res, {
      target: url,
      isHead: method === 'HEAD',
      asking: { ...plain, deps },
      // The next call of scanHeaders writes over what this one has found.
      wanted: { format: plain.format, asked: { ...asked }, gzipMinBytes: deps.gzipMinBytes },
    });
    return true;
  };
}

interface Going {
  target: string;
  isHead: boolean;
  asking: Asking;
  wanted: Wanted & { asked: Readonly<AskedHeaders> };
}

const contextFor = ({ target, format, handle }: PlainQuestion): RequestContext => {
  return { family: 'record', target, format, handle, result: 'local' };
};
