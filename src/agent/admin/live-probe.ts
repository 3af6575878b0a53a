import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback } from 'xstate';
import type { ProbeOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import type {
  ProbeExplain,
  ProbeFailed,
  ProbeIncomplete,
  ProbePassed,
  ProbeRun,
  ProbeWaiting,
} from '../../../machines/agent/protocol.ts';
import type { RefusedListener } from '../../../machines/agent/status-protocol.ts';
import { messageOf } from '../../runtime/errors.ts';
import { hostMs } from '../../runtime/host-clock.ts';
import type { XdsActivity } from '../xds/xds-activity.ts';
import type { AdminClient, AdminConnector } from './admin-client.ts';
import { getRejectedListeners } from './refused-listeners.ts';
import { whyUnreachable } from './why-unreachable.ts';

export interface ProbeEnvironment {
  readonly adminAt: AdminConnector;
  readonly discoveryAddress: string | undefined;
  readonly xds: Pick<XdsActivity, 'trouble' | 'responses'>;
  /** Absent without an identity; the function returns `undefined` if the workload has a certificate. */
  readonly missingCertificate?: () => string | undefined;
  /** Whether the shared memory of a base ID has the flag of an initializing epoch; `undefined` if unknown. */
  readonly isMarkedInitializing?: (baseId: number) => boolean | undefined;
}

/** Most epochs become live within this time, so probes are frequent until then. */
const eagerPhaseMs = 1_000;
const eagerPauseMs = 25;
const pauseMs = 250;
/** Without a response for this time, the agent reads Envoy's shared memory. */
const silentMs = 500;
/** A child with a static configuration has the flag for 40 ms (measured). */
const markPauseMs = 10;

type Report = ProbePassed | ProbeIncomplete | ProbeFailed | ProbeWaiting;

export function liveProbe(environment: ProbeEnvironment) {
  return fromCallback<ProbeRun | ProbeExplain, ProbeOrder>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const report = (event: Report): void => {
      if (stop.signal.aborted) return;
      // Report once, although the probe loop and a requested probe may both succeed.
      if (event.type === 'probe.passed') stop.abort();
      sendBack(event);
    };
    const probe = new Probe(environment, input, report);
    receive(
      (order) => void (order.type === 'probe.run' ? probe.probeNow(order.acceptsMissingListeners) : probe.explain()),
    );
    if (input.adopted?.live) probe.reportAdopted();
    else {
      if (input.isProbeRequested) void probe.probeNow(false);
      void probe.probeUntilLive(stop.signal);
      void probe.awaitMark(stop.signal);
    }
    return () => stop.abort();
  });
}

interface ProbeFinding {
  readonly live: boolean;
  readonly responded: boolean;
  readonly detail: string;
}

/** The flag in shared memory shows that the epoch is live; Envoy's main thread is too busy to respond. */
const liveByMark: ProbeFinding = { live: true, responded: false, detail: 'LIVE' };

class Probe {
  readonly #environment: ProbeEnvironment;
  readonly #input: ProbeOrder;
  readonly #admin: AdminClient;
  readonly #startedAt = performance.now();
  /** Last time at which Envoy was not live, by the host's clock. */
  #lastNotLiveAt: number;
  readonly #report: (event: Report) => void;
  /** The flag in shared memory is `own` if this child has set it. */
  #initializingMark: 'unseen' | 'clear' | 'own' = 'unseen';

  constructor(environment: ProbeEnvironment, input: ProbeOrder, report: (event: Report) => void) {
    this.#environment = environment;
    this.#input = input;
    this.#admin = environment.adminAt(input.adminPort);
    this.#lastNotLiveAt = input.startedAtMs;
    this.#report = report;
  }

  reportAdopted(): void {
    this.#reportPassed();
  }

  async probeUntilLive(stopSignal: AbortSignal): Promise<void> {
    const roundsStartedAt = performance.now();
    let lastReportedListeners = '';
    while (!stopSignal.aborted) {
      const { live } = await this.#probe();
      const missingListeners = live ? await this.#describeMissingListeners() : '';
      if (live && missingListeners === '') {
        this.#reportPassed();
        return;
      }
      if (missingListeners !== '' && missingListeners !== lastReportedListeners)
        this.#report({ type: 'probe.incomplete', reason: missingListeners });
      lastReportedListeners = missingListeners;
      const isEagerPhase = performance.now() - roundsStartedAt < eagerPhaseMs;
      await sleep(isEagerPhase ? eagerPauseMs : pauseMs, undefined, { signal: stopSignal }).catch(() => {});
    }
  }

  /** Call before a new process can set the flag. */
  async awaitMark(stopSignal: AbortSignal): Promise<void> {
    const { epoch, baseId } = this.#input;
    const isMarked = () => (epoch === 0 ? undefined : this.#environment.isMarkedInitializing?.(baseId));
    for (let mark = isMarked(); mark !== undefined && !stopSignal.aborted; mark = isMarked()) {
      if (mark && this.#initializingMark === 'clear') {
        this.#initializingMark = 'own';
        return;
      }
      if (!mark) this.#initializingMark = 'clear';
      await sleep(markPauseMs, undefined, { signal: stopSignal }).catch(() => {});
    }
  }

  async probeNow(acceptsMissingListeners: boolean): Promise<void> {
    const { live, detail } = await this.#probe();
    const missingListeners = live && !acceptsMissingListeners ? await this.#describeMissingListeners() : '';
    if (live && missingListeners === '') this.#reportPassed();
    else this.#report({ type: 'probe.failed', reason: missingListeners || detail });
  }

  async explain(): Promise<void> {
    const finding = await this.#probe();
    if (finding.live) return;
    const reason = await describeWait(this.#environment, finding);
    this.#report({ type: 'probe.waiting', reason });
  }

  /** An Envoy that does not respond may be live and busy. */
  async #probe(): Promise<ProbeFinding> {
    const requestedAt = hostMs();
    const pendingProbe = probeAdmin(this.#admin, this.#input);
    const silentMark = Symbol('silent');
    const firstResult = await Promise.race([pendingProbe, sleep(silentMs, silentMark, { ref: false })]);
    if (firstResult === silentMark && this.#isLiveByMark()) return liveByMark;
    const finding = await pendingProbe;
    if (!finding.responded && this.#isLiveByMark()) return liveByMark;
    if (finding.responded && !finding.live) this.#lastNotLiveAt = requestedAt;
    return finding;
  }

  /**
   * A child sets the flag when it attaches to the shared memory, and clears it when it becomes live (docs/hot-restart-reference.md, facts 1 and 2).
   * Only a flag that appeared during this probe counts.
   */
  #isLiveByMark(): boolean {
    return this.#initializingMark === 'own' && this.#environment.isMarkedInitializing?.(this.#input.baseId) === false;
  }

  #reportPassed(): void {
    const timeToLiveMs = Math.round(performance.now() - this.#startedAt);
    this.#report({ type: 'probe.passed', timeToLiveMs, unseenMs: hostMs() - this.#lastNotLiveAt });
  }

  async #describeMissingListeners(): Promise<string> {
    const rejectedListeners = this.#input.listeners ? ((await getRejectedListeners(this.#admin)) ?? []) : [];
    if (rejectedListeners.length === 0) return '';
    const [{ name, reason: rejectionReason }] = rejectedListeners as [RefusedListener];
    return `LIVE, but Envoy rejected ${rejectedListeners.length} ${rejectedListeners.length === 1 ? 'listener' : 'listeners'}, first ${name}: ${rejectionReason}`;
  }
}

/**
 * Status 200 of `/ready` alone may come from the parent or another program, and the port may move to the child before the
 * next request. Only `/server_info` contains epoch and state in one response; it is large, so it is requested only after `/ready` succeeds.
 */
async function probeAdmin(admin: AdminClient, { epoch }: Pick<ProbeOrder, 'epoch'>): Promise<ProbeFinding> {
  const state = await admin.state();
  if (!state.live) return state;
  try {
    const server = await admin.serverInfo();
    const detail =
      server.epoch === epoch ? server.state : `${admin.address} is the admin interface of epoch ${server.epoch}`;
    return { live: detail === 'LIVE', responded: true, detail };
  } catch (error) {
    return { live: false, responded: false, detail: messageOf(error) };
  }
}

async function describeWait(environment: ProbeEnvironment, finding: ProbeFinding): Promise<string> {
  const { discoveryAddress, xds } = environment;
  if (!finding.responded || !finding.detail.includes('INITIALIZING') || discoveryAddress === undefined) {
    return finding.detail;
  }
  const problem = await whyUnreachable(discoveryAddress);
  if (problem !== undefined) {
    return `${finding.detail}: control plane ${discoveryAddress} is unreachable (${problem})`;
  }
  const missingCertificate = environment.missingCertificate?.();
  if (missingCertificate !== undefined)
    return `${finding.detail}: the workload has no certificate (${missingCertificate})`;
  if (xds.trouble !== '')
    return `${finding.detail}: xDS stream to control plane ${discoveryAddress} failed: ${xds.trouble}`;
  const progressText = xds.responses > 0 ? 'has not sent all resources yet' : 'has sent no xDS response yet';
  return `${finding.detail}: control plane ${discoveryAddress} is connected and ${progressText}`;
}
