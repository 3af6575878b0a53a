/**
 * The probe effect of an epoch: asks the admin interface until this very epoch is live, and says what it finds. What follows, and
 * when people are told what it waits for, is for the chart to say.
 */
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
import { askRefusedListeners } from './refused-listeners.ts';
import { whyUnreachable } from './why-unreachable.ts';

export interface ProbeEnvironment {
  readonly adminAt: AdminConnector;
  /** Undefined when the bootstrap is the user's own. */
  readonly discoveryAddress: string | undefined;
  /** What goes through the agent's xDS proxy. */
  readonly xds: Pick<XdsActivity, 'trouble' | 'responses'>;
  /** Whether the shared memory of a base id says that an epoch is initializing; undefined: nobody can tell. */
  readonly isMarkedInitializing?: (baseId: number) => boolean | undefined;
}

/** Most become live in this time (spec/envoy-hot-restart.md §1), and are looked at often: who is live unseen is taken for one that is not. */
const eagerMs = 1_000;
const eagerPauseMs = 25;
const pauseMs = 250;
/** After so long without an answer Envoy's shared memory is looked at. Whoever has ordered a look waits twice as long (restart.machine.ts). */
const silentMs = 500;
/** A child with a configuration of its own has the mark for 40 ms (measured), between looks. */
const markPauseMs = 10;

type Report = ProbePassed | ProbeIncomplete | ProbeFailed | ProbeWaiting;

export function liveProbe(environment: ProbeEnvironment) {
  return fromCallback<ProbeRun | ProbeExplain, ProbeOrder>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const report = (event: Report): void => {
      if (stop.signal.aborted) return;
      // Live once is live: the rounds and a look that was ordered may both find it.
      if (event.type === 'probe.passed') stop.abort();
      sendBack(event);
    };
    const probe = new Probe(environment, input, report);
    receive((order) => void (order.type === 'probe.run' ? probe.lookNow(order.asItIs) : probe.explain()));
    if (input.adopted?.live) probe.wasSeen();
    else {
      if (input.asked) void probe.lookNow(false);
      void probe.rounds(stop.signal);
      void probe.awaitMark(stop.signal);
    }
    return () => stop.abort();
  });
}

interface Finding {
  readonly live: boolean;
  readonly answered: boolean;
  readonly detail: string;
}

/** Live by the mark in shared memory: Envoy's main thread is too busy to answer. */
const byMark: Finding = { live: true, answered: false, detail: 'LIVE' };

class Probe {
  readonly #environment: ProbeEnvironment;
  readonly #input: ProbeOrder;
  readonly #admin: AdminClient;
  /** When the probe began: as soon as there is a process. */
  readonly #startedAt = performance.now();
  /** When Envoy was last seen not to be live, by the clock of the host. */
  #notLiveAt: number;
  readonly #report: (event: Report) => void;
  /** What the mark in shared memory was seen to be: `own` is this child's. */
  #mark: 'unseen' | 'clear' | 'own' = 'unseen';

  constructor(environment: ProbeEnvironment, input: ProbeOrder, report: (event: Report) => void) {
    this.#environment = environment;
    this.#input = input;
    this.#admin = environment.adminAt(input.adminPort);
    this.#notLiveAt = input.startedAtMs;
    this.#report = report;
  }

  /** An agent before this one has seen the epoch live already. */
  wasSeen(): void {
    this.#passed();
  }

  async rounds(stopped: AbortSignal): Promise<void> {
    const beganAt = performance.now();
    let told = '';
    while (!stopped.aborted) {
      const { live } = await this.#look();
      const lacking = live ? await this.#lacking() : '';
      if (live && lacking === '') {
        this.#passed();
        return;
      }
      if (lacking !== '' && lacking !== told) this.#report({ type: 'probe.incomplete', reason: lacking });
      told = lacking;
      const isEager = performance.now() - beganAt < eagerMs;
      await sleep(isEager ? eagerPauseMs : pauseMs, undefined, { signal: stopped }).catch(() => {});
    }
  }

  /** Begins when it has just got its process, and cannot have come so far. */
  async awaitMark(stopped: AbortSignal): Promise<void> {
    const { epoch, baseId } = this.#input;
    const isMarked = () => (epoch === 0 ? undefined : this.#environment.isMarkedInitializing?.(baseId));
    for (let mark = isMarked(); mark !== undefined && !stopped.aborted; mark = isMarked()) {
      if (mark && this.#mark === 'clear') {
        this.#mark = 'own';
        return;
      }
      if (!mark) this.#mark = 'clear';
      await sleep(markPauseMs, undefined, { signal: stopped }).catch(() => {});
    }
  }

  async lookNow(asItIs: boolean): Promise<void> {
    const { live, detail } = await this.#look();
    const lacking = live && !asItIs ? await this.#lacking() : '';
    if (live && lacking === '') this.#passed();
    else this.#report({ type: 'probe.failed', reason: lacking || detail });
  }

  /** What Envoy waits for, as far as one can tell from outside. */
  async explain(): Promise<void> {
    const finding = await this.#look();
    // The next round tells.
    if (finding.live) return;
    const reason = await whatItWaitsFor(this.#environment, finding);
    this.#report({ type: 'probe.waiting', reason });
  }

  /** An Envoy that does not answer may be live, and busy. */
  async #look(): Promise<Finding> {
    const askedAt = hostMs();
    const asked = look(this.#admin, this.#input);
    const silent = Symbol('silent');
    const first = await Promise.race([asked, sleep(silentMs, silent, { ref: false })]);
    if (first === silent && this.#isLiveByMark()) return byMark;
    const finding = await asked;
    if (!finding.answered && this.#isLiveByMark()) return byMark;
    if (finding.answered && !finding.live) this.#notLiveAt = askedAt;
    return finding;
  }

  /**
   * A child sets the mark when it attaches, and clears it in the moment in which it is live (spec/envoy-hot-restart.md facts 1 and 2). One that was
   * there before may be what another child has left, or its parent's, which has just become live: this child's own is one that was
   * seen to come.
   */
  #isLiveByMark(): boolean {
    return this.#mark === 'own' && this.#environment.isMarkedInitializing?.(this.#input.baseId) === false;
  }

  #passed(): void {
    const timeToLiveMs = Math.round(performance.now() - this.#startedAt);
    this.#report({ type: 'probe.passed', timeToLiveMs, unseenMs: hostMs() - this.#notLiveAt });
  }

  /** Listeners that it refused and does not have; empty: none that is known of. */
  async #lacking(): Promise<string> {
    const refused = this.#input.listeners ? ((await askRefusedListeners(this.#admin)) ?? []) : [];
    if (refused.length === 0) return '';
    const [{ name, why }] = refused as [RefusedListener];
    return `LIVE, but Envoy rejected ${refused.length} ${refused.length === 1 ? 'listener' : 'listeners'}, first ${name}: ${why}`;
  }
}

/**
 * A 200 alone proves nothing: it may be the parent's, or a stranger's (spec/agent.md §2.6 F13). Nor is it the child's word when
 * the child answers the next question: the admin port may have come to it in between. Who it is and whether it is live
 * has to be one answer, which is asked for only then: it is long.
 */
async function look(admin: AdminClient, { epoch }: Pick<ProbeOrder, 'epoch'>): Promise<Finding> {
  const state = await admin.state();
  if (!state.live) return state;
  try {
    const answering = await admin.serverInfo();
    const detail =
      answering.epoch === epoch
        ? answering.state
        : `${admin.address} is the admin interface of epoch ${answering.epoch}`;
    return { live: detail === 'LIVE', answered: true, detail };
  } catch (error) {
    return { live: false, answered: false, detail: messageOf(error) };
  }
}

async function whatItWaitsFor({ discoveryAddress, xds }: ProbeEnvironment, finding: Finding): Promise<string> {
  if (!finding.answered || !finding.detail.includes('INITIALIZING') || discoveryAddress === undefined) {
    return finding.detail;
  }
  const problem = await whyUnreachable(discoveryAddress);
  if (problem !== undefined) {
    return `${finding.detail}: control plane ${discoveryAddress} is unreachable (${problem})`;
  }
  if (xds.trouble !== '')
    return `${finding.detail}: xDS stream to control plane ${discoveryAddress} failed: ${xds.trouble}`;
  const how = xds.responses > 0 ? 'has not sent all resources yet' : 'has sent no xDS response yet';
  return `${finding.detail}: control plane ${discoveryAddress} is connected and ${how}`;
}
