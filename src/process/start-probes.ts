// Tries every server at the start and logs each result; repeats until one can answer reads.
import type { Logger } from '../observe/logger.js';
import type { ProbeReport } from '../upstream/probe.js';
import type { Probe, ProbeTarget } from './probes.js';

interface StartProbesDeps {
  probes: readonly Probe[];
  logger: Pick<Logger, 'info' | 'warn'>;
  /** Called once, when the upstream or a mirror has answered. */
  onAnswered: () => void;
}

/** After a round in which neither the upstream nor a mirror answered. */
const REPEAT_MS = 2000;

const ANSWER_READS: readonly ProbeTarget[] = ['upstream', 'mirror'];

/** The result cancels them. */
export function startProbes({ probes, logger, onAnswered }: StartProbesDeps): () => void {
  const cancelled = new AbortController();
  const { signal } = cancelled;
  const log = logChanges(logger);
  let hasAnswered = false;
  let timer: NodeJS.Timeout | undefined;

  async function tryOne(probe: Probe): Promise<void> {
    const report = await probe.run(signal);
    if (signal.aborted) return;
    log(probe, report);
    if (hasAnswered || !report.hasAnswered || !ANSWER_READS.includes(probe.target)) return;
    hasAnswered = true;
    onAnswered();
  }

  async function tryAll(round: readonly Probe[]): Promise<void> {
    await Promise.all(round.map(tryOne));
    if (hasAnswered || signal.aborted) return;
    const readers = probes.filter(({ target }) => ANSWER_READS.includes(target));
    timer = setTimeout(() => void tryAll(readers), REPEAT_MS).unref();
  }

  void tryAll(probes);
  return () => {
    cancelled.abort();
    clearTimeout(timer);
  };
}

/** A server that fails for the same reason as before is not logged again. */
function logChanges(logger: StartProbesDeps['logger']): (probe: Probe, report: ProbeReport) => void {
  const reasons = new Map<Probe, string>();
  return function logChange(probe, { ms, version, certificate, failure }) {
    const { target, server } = probe;
    const reason = failure === undefined ? '' : `${failure.code} ${failure.cause}`;
    if (reasons.get(probe) === reason) return;
    reasons.set(probe, reason);
    if (failure === undefined)
      logger.info({ target, server, ms, version, ...certificate }, 'probe succeeded');
    else logger.warn({ target, server, ms, ...failure, ...certificate }, 'probe failed');
  };
}
