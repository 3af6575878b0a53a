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
  ProbeLacking,
  ProbeLook,
  ProbePassed,
  ProbeWaiting,
  RefusedListener,
} from '../../../machines/agent/protocol.ts';
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
}

/** Most become live in this time (spec/envoy-hot-restart.md §1), and are looked at often: who is live unseen is taken for one that is not. */
const eagerMs = 1_000;
const eagerPauseMs = 25;
const pauseMs = 250;

type Report = ProbePassed | ProbeLacking | ProbeFailed | ProbeWaiting;

export function liveProbe(environment: ProbeEnvironment) {
  return fromCallback<ProbeLook | ProbeExplain, ProbeOrder>(({ input, sendBack, receive }) => {
    const stop = new AbortController();
    const report = (event: Report): void => {
      if (stop.signal.aborted) return;
      // Live once is live: the rounds and a look that was ordered may both find it.
      if (event.type === 'probe.passed') stop.abort();
      sendBack(event);
    };
    const probe = new Probe(environment, input, report);
    receive((order) => void (order.type === 'probe.look' ? probe.lookNow(order.asItIs) : probe.explain()));
    if (input.adopted?.live) probe.wasSeen();
    else {
      if (input.asked) void probe.lookNow(false);
      void probe.rounds(stop.signal);
    }
    return () => stop.abort();
  });
}

interface Finding {
  readonly live: boolean;
  readonly answered: boolean;
  readonly detail: string;
}

class Probe {
  readonly #environment: ProbeEnvironment;
  readonly #input: ProbeOrder;
  readonly #admin: AdminClient;
  /** It is asked as soon as there is a process. */
  readonly #startedAt = performance.now();
  /** At this time, by the clock of the host, it was not live. */
  #notLiveAt: number;
  readonly #report: (event: Report) => void;

  constructor(environment: ProbeEnvironment, input: ProbeOrder, report: (event: Report) => void) {
    this.#environment = environment;
    this.#input = input;
    this.#admin = environment.adminAt(input.adminPort);
    this.#notLiveAt = input.startedAtMs;
    this.#report = report;
  }

  /** By an agent before this one. */
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
      if (lacking !== '' && lacking !== told) this.#report({ type: 'probe.lacking', reason: lacking });
      told = lacking;
      const isEager = performance.now() - beganAt < eagerMs;
      await sleep(isEager ? eagerPauseMs : pauseMs, undefined, { signal: stopped }).catch(() => {});
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
    const finding = await look(this.#admin, this.#input);
    if (finding.answered && !finding.live) this.#notLiveAt = askedAt;
    return finding;
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
    return `LIVE without ${refused.length} refused listeners, ${name}: ${why}`;
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
    const detail = answering.epoch === epoch ? answering.state : `epoch ${answering.epoch} answers at ${admin.address}`;
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
    return `${finding.detail}: no configuration from the control plane at ${discoveryAddress} (${problem})`;
  }
  if (xds.trouble !== '') return `${finding.detail}: the control plane at ${discoveryAddress} is there: ${xds.trouble}`;
  const how = xds.responses > 0 ? 'has not sent all of the configuration' : 'has not answered on the xDS stream';
  return `${finding.detail}: the control plane at ${discoveryAddress} is connected and ${how}`;
}
