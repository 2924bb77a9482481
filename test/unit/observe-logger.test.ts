import { describe, expect, it } from 'vitest';
import { createLogger, type Logger, readableLines } from '../../src/observe/logger.js';

function logged(write: (logger: Logger) => void, level = 'info'): string[] {
  const lines: string[] = [];
  write(createLogger({ level, destination: { write: (line) => void lines.push(line) } }));
  return lines;
}

const only = (lines: string[]): Record<string, unknown> => JSON.parse(lines[0]!) as Record<string, unknown>;

const credential = 'Basic aHVudGVyMg==';

describe('logger', () => {
  it.each<[string, (logger: Logger) => void]>([
    [
      'a header',
      (log) => {
        log.info({ authorization: credential });
      },
    ],
    [
      'a header in any case',
      (log) => {
        log.info({ headers: { 'Proxy-Authorization': credential } });
      },
    ],
    [
      'deeply nested request headers',
      (log) => {
        log.info({ a: { b: { c: { headers: { Authorization: credential } } } } });
      },
    ],
    [
      'a cookie',
      (log) => {
        log.info({ res: { headers: { 'Set-Cookie': [credential], cookie: credential } } });
      },
    ],
    [
      'a raw header list',
      (log) => {
        log.info({ rawHeaders: ['Accept', '*/*', 'Authorization', credential] });
      },
    ],
    [
      'a list of header pairs',
      (log) => {
        log.info({ headers: [['Authorization', credential]] });
      },
    ],
    [
      'a password in the configuration',
      (log) => {
        log.info({ redis: { password: credential } });
      },
    ],
    [
      'an address',
      (log) => {
        log.info({ url: `redis://proxy:${encodeURIComponent(credential)}@redis:6379` });
      },
    ],
    [
      'a message',
      (log) => {
        log.info(`connected to redis://:${encodeURIComponent(credential)}@redis`);
      },
    ],
    [
      'a child logger',
      (log) => {
        log.child({ headers: { authorization: credential } }).info('hello');
      },
    ],
    [
      'an error',
      (log) => {
        log.error(Object.assign(new Error('no'), { config: { headers: { authorization: credential } } }));
      },
    ],
    [
      'the cause of an error',
      (log) => {
        log.error({ err: new Error('no', { cause: new Error('redis://:aHVudGVyMg@x') }) });
      },
    ],
  ])('redacts credentials in %s', (_, write) => {
    const lines = logged(write);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('***');
    expect(lines[0]).not.toContain('aHVudGVyMg');
  });

  it('preserves values without credentials', () => {
    const members = {
      handle: '21.T1/a@b',
      status: 200,
      ok: true,
      none: null,
      list: [1, { two: 2 }],
      path: '21.T1//a@b',
    };
    expect(
      only(
        logged((log) => {
          log.info(members, 'request');
        }),
      ),
    ).toMatchObject({ ...members, msg: 'request', level: 'info' });
  });

  it('preserves the message and stack of an error', () => {
    const line = only(
      logged((log) => {
        log.error({ err: new TypeError('broken') });
      }),
    );
    expect(line).toMatchObject({
      err: {
        type: 'TypeError',
        message: 'broken',
        stack: expect.stringContaining('observe-logger') as string,
      },
    });
  });

  it('logs circular objects', () => {
    const self: Record<string, unknown> = {};
    self['self'] = self;
    expect(
      logged((log) => {
        log.info(self);
      }),
    ).toHaveLength(1);
  });

  it('writes no message below its level', () => {
    expect(
      logged((log) => {
        log.info('hello');
      }, 'warn'),
    ).toEqual([]);
    expect(
      logged((log) => {
        log.fatal('hello');
      }, 'silent'),
    ).toEqual([]);
  });

  it('formats lines for a terminal, and escapes what would change it', () => {
    const lines = logged((log) => {
      log.info({ handle: '21.T1/a\u001b[2J\u202e', path: '/a b', ms: 3 }, 'request');
      log.error(
        { err: Object.assign(new Error('broken \u001b]0;x'), { code: 'EPIPE' }) },
        'unexpected error',
      );
    });
    const [request, error, ...stack] = readableLines(lines.join('')).trimEnd().split('\n');
    expect(request?.slice(9)).toBe(
      String.raw` INFO  request  handle=21.T1/a\u001b[2J\u202e  path="/a b"  ms=3`.replaceAll('\\\\', '\\'),
    );
    expect(error).toMatch(/^\d\d:\d\d:\d\dZ ERROR unexpected error .*code=EPIPE/);
    expect(stack[0]).toBe(String.raw`    Error: broken \u001b]0;x`);
    expect(stack[1]).toMatch(/^ {4}at /);
  });
});
