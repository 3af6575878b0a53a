/**
 * Admits clients according to load. The chart `stream-admission` determines how many TLS handshakes, and how many streams without a first response,
 * may be in progress at a time.
 *
 * A client that returns with its configuration needs only a small first response, so its stream has separate slots. Because a client can claim this
 * falsely, it must have a certificate.
 */
import type { Actor } from 'xstate';
import {
  initialSlots,
  type streamAdmissionMachine,
} from '../../../../machines/discovery/xds/stream-admission.machine.ts';
import { startRoot } from '../../../runtime/actors/actor-system.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { AdmissionView } from '../ads-observer.ts';
import type { FirstRequest } from '../requests/ads-request.ts';
import { streamAdmissionWithEffects } from '../stream-admission.effects.ts';
import { type Admission, type AdmittedStream, createAdmission, type NodeReader } from './ads-admission.ts';
import type { KnownNodes } from './known-nodes.ts';
import type { ConnectionSetUp } from './unidentified-connections.ts';

/**
 * While this many streams wait, no connection is set up, because a connection without a session costs less. The value is below the limit of
 * unidentified connections (4,096). It is high, because clients wait for their streams, but give up if a handshake takes longer than 20 s (gRPC for
 * Go).
 */
const maxWaitingStreams = 3_500;
const loggedAfterMs = 1_000;

export interface LimitedPorts {
  readonly waitingCount: number;
  readonly isFull: boolean;
  setSlots(slots: number): void;
  wakeConnections(): void;
}

export interface LoadAdmissionOptions {
  /** PILOT_MAX_REQUESTS_PER_SECOND. If 0, only the load limits streams. */
  readonly perSecond: number;
  readonly known: KnownNodes;
  readonly logger: Logger;
  readonly recorder?: Recorder;
  /** Requests that are received but not processed. */
  readonly requests: () => number;
  readonly proxies: () => number;
  /** Called with each measurement, and when no client is waiting. */
  readonly onMeasured?: (view: AdmissionView) => void;
}

export type FirstRequestReader = (onFirstRequest: (firstRequest: FirstRequest) => void) => void;

export class LoadAdmission {
  readonly #admission: Admission;
  /** `undefined` if a rate limits all streams. */
  readonly #returningAdmission: Admission | undefined;
  readonly #actor: Actor<typeof streamAdmissionMachine>;
  readonly #options: LoadAdmissionOptions;
  #slots = initialSlots;
  #begunCount = 0;
  #queuedAt: number | undefined;
  #logTimer: NodeJS.Timeout | undefined;
  #isLogged = false;
  #isStopped = false;
  #ports: LimitedPorts | undefined;

  constructor(options: LoadAdmissionOptions) {
    this.#options = options;
    const { perSecond, known, logger, recorder, requests, proxies } = options;
    const onChange = (): void => this.#onQueueChange();
    const newAdmission = (): Admission =>
      createAdmission({
        ...{ perSecond, known, slots: initialSlots, now: () => performance.now() },
        ...{ onChange, onBegun: () => this.#onStarted() },
      });
    this.#admission = newAdmission();
    this.#returningAdmission = perSecond > 0 ? undefined : newAdmission();
    const machine = streamAdmissionWithEffects({
      ...{ requests, proxies },
      isFull: () => [...this.#admissions, this.#ports].some((admissionStage) => admissionStage?.isFull === true),
      applySlots: (slots) => this.#applySlots(slots),
      onMeasured: () => this.#onMeasured(),
    });
    this.#actor = startRoot(machine, {
      ...{ id: 'stream-admission', input: undefined },
      ...(recorder !== undefined && { recorder }),
      onError: (error) => {
        logger.error('admission.failed', { error: messageOf(error) });
        this.#applySlots(Number.POSITIVE_INFINITY);
      },
    });
    this.#actor.subscribe({ error: () => {} });
  }

  /**
   * See {@link Admission.admit}.
   *
   * @param isTrusted whether the client has a verified certificate
   */
  admit(
    { peer, isTrusted }: { readonly peer: string; readonly isTrusted: boolean },
    onAdmitted: (admitted: AdmittedStream) => void,
    onRejected: () => void,
    readFirst: FirstRequestReader,
  ): () => void {
    const returningAdmission = isTrusted ? this.#returningAdmission : undefined;
    let isDecisionPending = true;
    let cancelAdmission = (): void => {};
    const onceDecided =
      <Args extends unknown[]>(call: (...args: Args) => void) =>
      (...args: Args): void => {
        isDecisionPending = false;
        call(...args);
      };
    const callbacks = [onceDecided(onAdmitted), onceDecided(onRejected)] as const;
    const readNode: NodeReader = (onNode) =>
      readFirst(({ nodeId, isReturning }) => {
        if (isReturning && isDecisionPending && returningAdmission !== undefined) {
          cancelAdmission();
          cancelAdmission = returningAdmission.admit(peer, ...callbacks);
        } else if (nodeId !== undefined) onNode(nodeId);
      });
    cancelAdmission = this.#admission.admit(peer, ...callbacks, readNode);
    return () => {
      isDecisionPending = false;
      cancelAdmission();
    };
  }

  get connectionSetUp(): ConnectionSetUp {
    const onChange = (): void => this.#onQueueChange();
    return {
      ...{ slots: initialSlots, onChange },
      isOpen: () => this.#waitingStreams < maxWaitingStreams,
    };
  }

  setPorts(ports: LimitedPorts): void {
    this.#ports = ports;
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#logTimer);
    for (const admission of this.#admissions) admission.stop();
    this.#actor.stop();
  }

  get #admissions(): Admission[] {
    return [this.#admission, ...(this.#returningAdmission === undefined ? [] : [this.#returningAdmission])];
  }

  get #waitingStreams(): number {
    return this.#admission.waiting + (this.#returningAdmission?.waiting ?? 0);
  }

  get #view(): AdmissionView {
    return { streams: this.#waitingStreams, connections: this.#ports?.waitingCount ?? 0, slots: this.#slots };
  }

  #applySlots(slots: number): void {
    this.#slots = slots;
    for (const admission of this.#admissions) admission.setSlots(slots);
    this.#ports?.setSlots(slots);
  }

  #onStarted(): void {
    this.#begunCount++;
    if (this.#waitingStreams < maxWaitingStreams) this.#ports?.wakeConnections();
  }

  #onMeasured(): void {
    // Closed streams may have freed capacity.
    this.#ports?.wakeConnections();
    this.#options.onMeasured?.(this.#view);
  }

  #onQueueChange(): void {
    if (this.#isStopped) return;
    const { streams, connections } = this.#view;
    const isQueued = streams + connections > 0;
    if (isQueued === (this.#queuedAt !== undefined)) return;
    if (isQueued) {
      this.#queuedAt = performance.now();
      this.#begunCount = 0;
      this.#logTimer = setTimeout(() => this.#logQueue(), loggedAfterMs).unref();
      this.#actor.send({ type: 'clients.queued' });
    } else {
      this.#logEnd();
      this.#queuedAt = undefined;
      this.#actor.send({ type: 'clients.admitted' });
      this.#options.onMeasured?.(this.#view);
    }
  }

  #logQueue(): void {
    const { streams, connections } = this.#view;
    this.#isLogged = true;
    this.#options.logger.info('admission.queued', { connections, streams });
  }

  #logEnd(): void {
    clearTimeout(this.#logTimer);
    if (!this.#isLogged) return;
    this.#isLogged = false;
    const seconds = Math.round((performance.now() - this.#queuedAt!) / 100) / 10;
    this.#options.logger.info('admission.completed', { seconds, streams: this.#begunCount });
  }
}
