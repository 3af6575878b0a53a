/** The probe effect of an epoch: asks the admin interface until this very epoch is live. */
import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback } from 'xstate';
import type { ProbeFailed, ProbeLook, ProbePassed, ProbeWaiting } from '../../../machines/agent/protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { AdminClient } from './admin-client.ts';
import type { AdminDirectory } from './admin-interfaces.ts';
import { askRefusedListeners, type RefusedListener } from './refused-listeners.ts';
import { whyUnreachable } from './why-unreachable.ts';

export interface ProbeEnvironment {
  readonly admins: AdminDirectory;
  /** Undefined when the bootstrap is the user's own. */
  readonly discoveryAddress: string | undefined;
  /** When the epoch's process was started, by `performance.now()`. */
  readonly startOf: (run: EpochRun) => number | undefined;
  /** Until the first complaint, and between complaints. */
  readonly firstComplaintMs?: number;
  readonly complaintEveryMs?: number;
}

interface EpochRun {
  readonly epoch: number;
  readonly baseId: number;
}

/** Most become live in this time (spec/envoy-hot-restart.md §1), and are looked at often: who is live unseen is taken for one that is not. */
const eagerMs = 1_000;
const eagerPauseMs = 25;
const pauseMs = 250;
/** Longer than a start beside a serving Envoy may take, which is then ended: the other one has the listener. */
const listenersLimitMs = 25_000;

type Report = ProbePassed | ProbeFailed | ProbeWaiting;

export function liveProbe(environment: ProbeEnvironment) {
  return fromCallback<ProbeLook, EpochRun>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const report = (event: Report): void => {
      if (stop.signal.aborted) return;
      // Live once is live: the rounds and a look that was ordered may both find it.
      if (event.type === 'probe.passed') stop.abort();
      sendBack(event);
    };
    const startedAt = environment.startOf(input) ?? performance.now();
    receive(() => void lookNow(environment, input, startedAt, report));
    void probe(environment, input, startedAt, report, stop.signal);
    return () => stop.abort();
  });
}

async function lookNow(
  { admins }: ProbeEnvironment,
  run: EpochRun,
  startedAt: number,
  report: (event: Report) => void,
): Promise<void> {
  const admin = admins.of(run.baseId);
  const { live, detail } = await withListeners(await look(admin, run), admin, run, startedAt);
  if (!live) report({ type: 'probe.failed', reason: detail });
  else report({ type: 'probe.passed', timeToLiveMs: Math.round(performance.now() - startedAt) });
}

async function probe(
  environment: ProbeEnvironment,
  run: EpochRun,
  startedAt: number,
  report: (event: Report) => void,
  stopped: AbortSignal,
): Promise<void> {
  const { firstComplaintMs = 5_000, complaintEveryMs = 30_000 } = environment;
  const admin = environment.admins.of(run.baseId);
  const beganAt = performance.now();
  let complaintAt = beganAt + firstComplaintMs;
  while (!stopped.aborted) {
    const finding = await withListeners(await look(admin, run), admin, run, startedAt);
    if (finding.live) {
      report({ type: 'probe.passed', timeToLiveMs: Math.round(performance.now() - startedAt) });
      return;
    }
    if (performance.now() >= complaintAt) {
      complaintAt = performance.now() + complaintEveryMs;
      report({ type: 'probe.waiting', reason: await explain(environment, admin, finding) });
    }
    const isEager = performance.now() - beganAt < eagerMs;
    await sleep(isEager ? eagerPauseMs : pauseMs, undefined, { signal: stopped }).catch(() => {});
  }
}

interface Finding {
  readonly live: boolean;
  readonly answered: boolean;
  readonly detail: string;
}

/**
 * A 200 alone proves nothing: it may be the parent's, or a stranger's (spec/agent.md §2.6 F13). Nor is it the child's word when
 * the child answers the next question: the admin port may have come to it in between. Who it is and whether it is live
 * has to be one answer, which is asked for only then: it is long.
 */
async function look(admin: AdminClient, { epoch }: EpochRun): Promise<Finding> {
  const state = await admin.state();
  if (!state.live) return state;
  try {
    const answering = await admin.serverInfo();
    const detail = answering.epoch === epoch ? answering.state : `epoch ${answering.epoch} answers at ${admin.address}`;
    return { live: detail === 'LIVE', answered: true, detail };
  } catch (error) {
    return { live: false, answered: false, detail: messageOf(error) };
  }
}

/**
 * Live, and yet without a listener that it refused. A child has taken its parent's place by now, and is reported as it is. One
 * that nobody has made room for is held back: an Envoy that it would replace has that listener, and a first one may get it.
 */
async function withListeners(
  finding: Finding,
  admin: AdminClient,
  { epoch }: EpochRun,
  startedAt: number,
): Promise<Finding> {
  if (!finding.live || epoch > 0 || performance.now() - startedAt > listenersLimitMs) return finding;
  const refused = (await askRefusedListeners(admin)) ?? [];
  if (refused.length === 0) return finding;
  const [{ name, why }] = refused as [RefusedListener];
  return { live: false, answered: true, detail: `LIVE without ${refused.length} refused listeners, ${name}: ${why}` };
}

/** What Envoy waits for, as far as one can tell from outside. */
async function explain({ discoveryAddress }: ProbeEnvironment, admin: AdminClient, finding: Finding): Promise<string> {
  if (!finding.answered || !finding.detail.includes('INITIALIZING') || discoveryAddress === undefined) {
    return finding.detail;
  }
  const problem = await whyUnreachable(discoveryAddress);
  if (problem !== undefined) {
    return `${finding.detail}: no configuration from the control plane at ${discoveryAddress} (${problem})`;
  }
  const connected = await isConnected(admin);
  const how = connected
    ? 'is connected and has not sent all of the configuration'
    : 'accepts connections, but no xDS stream is open';
  return `${finding.detail}: the control plane at ${discoveryAddress} ${how}`;
}

async function isConnected(admin: AdminClient): Promise<boolean> {
  try {
    const { body } = await admin.get('/stats?filter=^control_plane.connected_state$');
    return /connected_state: 1\b/.test(body);
  } catch {
    return false;
  }
}
