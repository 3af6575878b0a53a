/** The sending side of a stream: makes the responses that were ordered, each when the client has taken those before. */
import type { ResponseOrder, ResponseSkipped, StreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, isAskedOnce, secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type RolloutRules, rolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import { nonceOf } from '../../../../machines/discovery/xds/stream-nonce.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { isProxyless } from '../../../model/node/parse-node.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { AdsObserver } from '../ads-observer.ts';
import type { OneShotAnswer } from '../one-shot.ts';
import type { Preparation, ResourceReferences, ResourceSet } from '../resource-source.ts';
import type { DepartedResources } from '../rollout/departed-clusters.ts';
import { removalTimesOf } from '../rollout/drain-time.ts';
import type { RemovalTimes } from '../rollout/draining-listeners.ts';
import type { RolloutEvent } from '../rollout/rollout-events.ts';
import { type GatedStream, RolloutGate } from '../rollout/rollout-gate.ts';
import { isClientGone } from '../stream/ads-transport.ts';
import { shortened } from '../stream/client-text.ts';
import type { StreamSurroundings } from '../stream/stream-surroundings.ts';
import { noteHandedOver } from '../turns/slices.ts';
import { bytesIn, countOf, encodeHead, type Resources, type ResponseHead } from './ads-response.ts';
import { type Selection, SentResources } from './ads-sent.ts';
import { withoutMissing } from './missing-secrets.ts';
import type { AdsResponderOptions, KnownClient } from './responder-options.ts';

/** A response waits while more than this of earlier ones has not left. */
const maxUnflushedBytes = 64 * 1024;

/** An order, and what it is to be answered from. */
interface WaitingOrder {
  readonly order: ResponseOrder;
  set: Answer | 'building';
}

/** `undefined` if the source makes no such resources. */
type Answer = ResourceSet | undefined | 'failed';

export class AdsResponder implements GatedStream {
  readonly #options: AdsResponderOptions;
  readonly #around: StreamSurroundings;
  readonly #sent = new Map<string, SentResources>();
  #client: KnownClient | undefined;
  /** Orders whose turn has not come: one a type at most, for the connection waits for the outcome of each. */
  #orders: WaitingOrder[] = [];
  #unflushedBytes = 0;
  #isCongested = false;
  #responses = 0;
  #wasRefusedSecrets = false;
  /** Those of the node; undefined until they matter. */
  #removal: RemovalTimes | undefined;
  readonly #gate: RolloutGate | undefined;

  constructor(options: AdsResponderOptions) {
    this.#options = options;
    this.#around = options.around;
    if (options.around.makeBeforeBreak !== undefined) this.#gate = new RolloutGate(this);
  }

  /** `undefined` if nothing is held back: gRPC requests clusters after routes, and uses no route before it has its clusters. */
  get gate(): RolloutGate | undefined {
    const { node } = this.#client ?? {};
    return node !== undefined && isProxyless(node.metadata) ? undefined : this.#gate;
  }

  get unflushedBytes(): number {
    return this.#unflushedBytes;
  }

  /** Whether a response waited, when it was last looked, until those before it had left. */
  get isCongested(): boolean {
    return this.#isCongested;
  }

  /** Types of which there is a record of what the client was sent. */
  get typesSent(): Iterable<string> {
    return this.#sent.keys();
  }

  /** How many resources of a type the client has. */
  resourcesSent(typeUrl: string): number {
    return this.#sent.get(typeUrl)?.count ?? 0;
  }

  get references(): ResourceReferences {
    return this.#around.makeBeforeBreak!.references;
  }

  get removal(): RemovalTimes {
    this.#removal ??= removalTimesOf(this.#client?.node, this.#around.makeBeforeBreak!.removal);
    return this.#removal;
  }

  get limitMs(): number {
    return this.#around.makeBeforeBreak!.limitMs;
  }

  get rules(): RolloutRules {
    return this.#around.makeBeforeBreak!.rules ?? rolloutRules;
  }

  get takesUnrequested(): boolean {
    return this.#options.onlyType === null && this.#client?.node.envoy !== undefined;
  }

  get isDelta(): boolean {
    return this.#options.delta;
  }

  watchOf(typeUrl: string): Watch | undefined {
    return this.#options.watchOf(typeUrl);
  }

  departedResources(): DepartedResources | undefined {
    const node = this.#client?.node;
    return node && this.#around.makeBeforeBreak?.departed.take(node, this.now());
  }

  now(): number {
    return this.#around.now();
  }

  generated(typeUrl: string): ResourceSet | undefined {
    const set = this.#tried(typeUrl, () => this.#client?.resources.get(typeUrl, '*'));
    return set === 'failed' ? undefined : set;
  }

  *generating(typeUrl: string): Steps<void> {
    const preparation = this.#tried(typeUrl, () => this.#client?.resources.prepare?.(typeUrl, '*'));
    if (preparation === undefined || preparation === 'failed') return;
    while (this.#tried(typeUrl, () => preparation.piece()) === true) yield;
  }

  tell(report: StreamReport): void {
    this.#options.tell(report);
  }

  takeRolloutEvent(event: RolloutEvent): void {
    this.#options.rollout(event);
  }

  sharedNames(names: readonly string[]): readonly string[] {
    return this.#around.lists.shared(names);
  }

  get observer(): AdsObserver {
    return this.#around.observer;
  }

  /** From now on there is somebody to answer. */
  meet(client: KnownClient): void {
    this.#client = client;
  }

  send(orders: readonly ResponseOrder[]): void {
    for (const order of orders) this.#orders.push(this.#begun(order));
    this.#sendDue();
  }

  /** Makes no more responses. */
  stop(): void {
    const resources = this.gate?.resources;
    if (resources !== undefined && this.#client !== undefined)
      this.#around.makeBeforeBreak?.departed.add(this.#client.node, resources, this.now());
    this.#orders = [];
    this.#sent.clear();
    this.#client = undefined;
  }

  /** Sends what was ordered, until the client has too much on its way. */
  #sendDue(): void {
    while (this.#orders.length > 0 && this.#unflushedBytes <= maxUnflushedBytes) {
      const { order, set } = this.#orders[0]!;
      if (set === 'building') break;
      this.#orders.shift();
      this.#answer(order, set);
    }
    const isCongested = this.#orders.length > 0;
    if (isCongested === this.#isCongested) return;
    this.#isCongested = isCongested;
    this.#options.congested(isCongested);
  }

  /**
   * What the client should have when the order is given, not when its turn comes: a later context may have reached the node by
   * then, and what this order refers to of that one is ordered later.
   */
  #begun(order: ResponseOrder): WaitingOrder {
    const { typeUrl, names } = order;
    if (isAskedOnce(typeUrl) || typeUrl === secretType) return { order, set: undefined };
    if (order.again !== undefined) {
      return { order, set: { version: order.again, resources: this.sentOf(typeUrl).resources } };
    }
    const preparation = this.#tried(typeUrl, () => this.#client?.resources.prepare?.(typeUrl, names));
    if (preparation === 'failed') return { order, set: 'failed' };
    if (preparation !== undefined) return this.#prepared(order, preparation);
    const set = this.#got(typeUrl, () => this.#client?.resources.get(typeUrl, names));
    const reading = this.#reading(order, set);
    if (reading === undefined || !this.#step(reading)) return { order, set };
    return this.#inTurns(order, () => (this.#step(reading) ? 'building' : set));
  }

  /** Waits until what it is answered from is made: others have their turns meanwhile. */
  #prepared(order: ResponseOrder, preparation: Preparation): WaitingOrder {
    const { observer } = this.#around;
    const { typeUrl } = order;
    let ms = 0;
    let set: Answer | 'building' = 'building';
    let reading: Steps<void> | undefined;
    return this.#inTurns(order, () => {
      if (reading !== undefined && this.#step(reading)) return 'building';
      if (set !== 'building') {
        observer.generated?.(typeUrl, ms);
        return set;
      }
      const started = performance.now();
      const more = this.#tried(typeUrl, () => preparation.piece());
      if (more === false) set = this.#tried(typeUrl, () => preparation.result());
      else if (more === 'failed') set = more;
      if (set !== 'building') reading = this.#reading(order, set);
      ms += performance.now() - started;
      // Comparing and writing it has a piece of its own: a list of thousands takes milliseconds.
      return 'building';
    });
  }

  /** @param piece does a little. @returns the answer when it is there */
  #inTurns(order: ResponseOrder, piece: () => Answer | 'building'): WaitingOrder {
    const waiting: WaitingOrder = { order, set: 'building' };
    this.#around.turns.begin(() => {
      if (this.#client === undefined) return false;
      waiting.set = piece();
      if (waiting.set === 'building') return true;
      this.#options.contained(() => this.#sendDue());
      return false;
    });
    return waiting;
  }

  #reading(order: ResponseOrder, set: Answer): Steps<void> | undefined {
    return set === undefined || set === 'failed' ? undefined : this.gate?.reading(order, set);
  }

  /** @returns whether there are more steps; a bug in one costs the stream */
  #step(steps: Steps<void>): boolean {
    const step: { done?: boolean } = { done: true };
    this.#options.contained(() => Object.assign(step, steps.next()));
    return step.done === false;
  }

  #answer(order: ResponseOrder, set: Answer): void {
    const { typeUrl } = order;
    if (isAskedOnce(typeUrl)) this.#answerOnce(order);
    else if (typeUrl === secretType && this.#refusesSecrets()) this.#skip(typeUrl, 'not served');
    else if (typeUrl === secretType) this.#answerSecrets(order);
    else this.#answerFrom(order, set);
  }

  /**
   * A secret that does not exist is not answered: Envoy uses a cluster or listener without it when it reads that it was removed, and its
   * requests fail until the secret comes.
   */
  #answerSecrets(order: ResponseOrder): void {
    const { typeUrl } = order;
    const set = this.#got(typeUrl, () => this.#client?.resources.get(typeUrl, order.names));
    if (this.gate === undefined || set === undefined || set === 'failed') {
      this.#answerFrom(order, set);
      return;
    }
    const known = withoutMissing(order, set, this.sentOf(typeUrl));
    if (known === undefined) this.#skip(typeUrl, 'unchanged');
    else this.#answerFrom(known, set);
  }

  #answerFrom(order: ResponseOrder, set: ResourceSet | undefined | 'failed'): void {
    const { typeUrl } = order;
    if (set === undefined || set === 'failed') {
      this.#skip(typeUrl, set ?? 'not served');
      return;
    }
    const prepared = this.gate === undefined ? { order, set } : this.gate.prepare(order, set);
    if (prepared === undefined) {
      this.#skip(typeUrl, 'held');
      return;
    }
    const selection = this.sentOf(typeUrl).take(prepared.order, prepared.set);
    if (selection === undefined) {
      this.#skip(typeUrl, 'unchanged');
      return;
    }
    if (typeUrl === clusterType && this.#around.rules.resendsEndpoints)
      this.sentOf(endpointType).forget(selection.changed);
    this.#respond(prepared.order, prepared.set.version, selection);
  }

  /** What is asked for once is told without being remembered. */
  #answerOnce(order: ResponseOrder): void {
    const { typeUrl, names } = order;
    const answer = this.#got(typeUrl, () => {
      const { node, identities, isSecure } = this.#client!;
      const asked = names === '*' ? [] : names;
      return this.#around.oneShot?.({ typeUrl, names: asked, node, identities, isSecure });
    });
    if (!(answer instanceof Promise)) {
      this.#tellOnce(order, answer);
      return;
    }
    answer
      .catch((error: unknown) => this.#failed(typeUrl, error))
      .then((later) => this.#client !== undefined && this.#options.contained(() => this.#tellOnce(order, later)));
  }

  #tellOnce(order: ResponseOrder, answer: OneShotAnswer | undefined | 'failed'): void {
    const { typeUrl } = order;
    if (answer === undefined || answer === 'failed') this.#skip(typeUrl, answer ?? 'not served');
    else if ('code' in answer) {
      this.#options.tell({ type: 'request.refused', code: answer.code, reason: shortened(answer.reason) });
    } else {
      const { version, resources } = answer;
      this.#respond(order, version, { resources, removed: [], changed: 'all', added: [] });
    }
  }

  /** What a source says; a source that throws is told of. */
  #got<Answer>(typeUrl: string, ask: () => Answer): Answer | 'failed' {
    const started = performance.now();
    const answer = this.#tried(typeUrl, ask);
    this.#around.observer.generated?.(typeUrl, performance.now() - started);
    return answer;
  }

  #tried<Answer>(typeUrl: string, ask: () => Answer): Answer | 'failed' {
    try {
      return ask();
    } catch (error) {
      return this.#failed(typeUrl, error);
    }
  }

  #failed(typeUrl: string, error: unknown): 'failed' {
    const { observer, logger } = this.#around;
    const node = this.#client?.node.id ?? '';
    observer.sourceFailed?.(typeUrl, node, error);
    logger.error('resources.failed', { node: shortened(node), typeUrl, reason: shortened(messageOf(error)) });
    return 'failed';
  }

  /** Secrets go only to those of whom it is known who they are (§7.6 #24), unless their port asks nobody. */
  #refusesSecrets(): boolean {
    if (this.#client === undefined || this.#client.identities.length > 0) return false;
    if (this.#client.node.secretsUnverified === true) return false;
    if (!this.#wasRefusedSecrets) {
      this.#wasRefusedSecrets = true;
      const { peer } = this.#options;
      const node = shortened(this.#client.node.id);
      this.#around.logger.warn('secrets.withheld', { node, peer });
    }
    return true;
  }

  #respond(order: ResponseOrder, version: string, selection: Selection): void {
    const { resources, removed } = selection;
    const { number, method, delta, tell } = this.#options;
    const { typeUrl } = order;
    // No other response of this process has the nonce, so that it tells which one is meant wherever it turns up.
    const nonce = nonceOf(version, number, ++this.#responses);
    const count = countOf(resources);
    const controlPlane = this.#around.controlPlane?.[delta ? 'delta' : 'sotw'];
    const head = { typeUrl, version, nonce, removed, ...(controlPlane !== undefined && { controlPlane }) };
    const bytes = this.#write(head, resources);
    const cause = order.all || order.asked.length > 0 ? 'request' : 'push';
    this.#around.observer.responseSent?.(typeUrl, { cause, resources: count, bytes });
    this.#around.observer.messageSent?.(method);
    const sentAt = this.#around.now();
    this.gate?.sent(order, version, selection, nonce);
    this.#client?.resources.sent?.(typeUrl, version, cause);
    const figures = { resources: count, removed: removed.length, sentAt };
    tell({ type: 'response.sent', typeUrl, nonce, version, ...figures, ...this.#awaits(typeUrl) });
  }

  #write(head: ResponseHead, resources: Resources): number {
    const { transport, delta, broken } = this.#options;
    const { observer, bodies } = this.#around;
    const parts = { own: encodeHead(head), shared: bodies.framesOf(resources, delta) };
    // A write can be flushed before it returns.
    const length = bytesIn(parts);
    this.#unflushedBytes += length;
    const started = performance.now();
    noteHandedOver(length);
    transport.send(parts, (error) => {
      this.#unflushedBytes -= length;
      if (error) {
        if (this.#client === undefined || isClientGone(error)) return;
        observer.sendFailed?.(head.typeUrl, this.#client.node.id, error);
        broken(error);
        return;
      }
      observer.responseFlushed?.(head.typeUrl, performance.now() - started);
      if (this.#orders.length > 0) this.#options.contained(() => this.#sendDue());
    });
    return length;
  }

  #skip(typeUrl: string, why: ResponseSkipped['why']): void {
    this.#options.tell({ type: 'response.skipped', typeUrl, why, ...this.#awaits(typeUrl) });
  }

  #awaits(typeUrl: string): Pick<ResponseSkipped, 'awaits'> {
    const awaits = this.gate?.awaits(typeUrl) ?? [];
    return awaits.length === 0 ? {} : { awaits };
  }

  sentOf(typeUrl: string): SentResources {
    let sent = this.#sent.get(typeUrl);
    if (sent === undefined) {
      sent = new SentResources(this.#options.delta);
      this.#sent.set(typeUrl, sent);
    }
    return sent;
  }
}
