/** Builds ordered responses and writes each after earlier ones were sent. */
import type {
  AdsStreamReport,
  ResponseOrder,
  ResponseSkipped,
} from '../../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, isOneTimeType, secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import { type RolloutRules, rolloutRules } from '../../../../machines/discovery/xds/rollout-rules.ts';
import { nonceOf } from '../../../../machines/discovery/xds/stream-nonce.ts';
import type { Watch } from '../../../../machines/discovery/xds/watch-record.ts';
import { isProxyless } from '../../../model/node/parse-node.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Steps } from '../../../runtime/turns.ts';
import type { AdsObserver } from '../ads-observer.ts';
import type { OneShotResponse } from '../one-shot.ts';
import type { ResourcePreparation, ResourceReferences, ResourceSet } from '../resource-source.ts';
import type { DepartedResources } from '../rollout/departed-clusters.ts';
import { removalTimesOf } from '../rollout/drain-time.ts';
import type { RemovalTimes } from '../rollout/draining-listeners.ts';
import type { RolloutEvent } from '../rollout/rollout-events.ts';
import { type GatedStream, RolloutGate } from '../rollout/rollout-gate.ts';
import { isClientDisconnected } from '../stream/ads-transport.ts';
import { shortenText } from '../stream/client-text.ts';
import type { StreamContext } from '../stream/stream-context.ts';
import { countSocketBytes } from '../turns/slices.ts';
import { byteLengthOf, countOf, encodeHead, type ResponseHead, type ResponseResources } from './ads-response.ts';
import { type ResponseSelection, SentResources } from './ads-sent.ts';
import { omitMissing } from './missing-secrets.ts';
import type { AdsResponderOptions, KnownClient } from './responder-options.ts';

/** A response waits while more bytes than this of earlier ones are unsent. */
const maxUnflushedBytes = 64 * 1024;

interface WaitingOrder {
  readonly order: ResponseOrder;
  set: ResponseSet | 'building';
}

/** `undefined` if the source has no such type. */
type ResponseSet = ResourceSet | undefined | 'failed';

export class AdsResponder implements GatedStream {
  readonly #options: AdsResponderOptions;
  readonly #context: StreamContext;
  readonly #sentByType = new Map<string, SentResources>();
  #client: KnownClient | undefined;
  /** There is at most one order per type, because the exchange waits for each outcome. */
  #orders: WaitingOrder[] = [];
  #unflushedBytes = 0;
  #isCongested = false;
  #responses = 0;
  #haveSecretsBeenRejected = false;
  #removal: RemovalTimes | undefined;
  readonly #rolloutGate: RolloutGate | undefined;

  constructor(options: AdsResponderOptions) {
    this.#options = options;
    this.#context = options.context;
    if (options.context.makeBeforeBreak !== undefined) this.#rolloutGate = new RolloutGate(this);
  }

  /** `undefined` for gRPC clients, which request clusters after routes and use no route before its clusters. */
  get gate(): RolloutGate | undefined {
    const { node } = this.#client ?? {};
    return node !== undefined && isProxyless(node.metadata) ? undefined : this.#rolloutGate;
  }

  get unflushedBytes(): number {
    return this.#unflushedBytes;
  }

  /** Whether a response waited at the last check. */
  get isCongested(): boolean {
    return this.#isCongested;
  }

  get typesSent(): Iterable<string> {
    return this.#sentByType.keys();
  }

  resourcesSent(typeUrl: string): number {
    return this.#sentByType.get(typeUrl)?.count ?? 0;
  }

  get references(): ResourceReferences {
    return this.#context.makeBeforeBreak!.references;
  }

  get removal(): RemovalTimes {
    this.#removal ??= removalTimesOf(this.#client?.node, this.#context.makeBeforeBreak!.removal);
    return this.#removal;
  }

  get limitMs(): number {
    return this.#context.makeBeforeBreak!.limitMs;
  }

  get rules(): RolloutRules {
    return this.#context.makeBeforeBreak!.rules ?? rolloutRules;
  }

  get takesUnrequested(): boolean {
    return this.#options.onlyType === null && this.#client?.node.envoy !== undefined;
  }

  get isDelta(): boolean {
    return this.#options.isDelta;
  }

  get isHalfClosed(): boolean {
    return this.#options.isHalfClosed();
  }

  watchOf(typeUrl: string): Watch | undefined {
    return this.#options.watchOf(typeUrl);
  }

  departedResources(): DepartedResources | undefined {
    const node = this.#client?.node;
    return node && this.#context.makeBeforeBreak?.departedClusters.takeDeparted(node, this.now());
  }

  now(): number {
    return this.#context.now();
  }

  generatedSet(typeUrl: string): ResourceSet | undefined {
    const set = this.#tryGet(typeUrl, () => this.#client?.resources.get(typeUrl, '*'));
    return set === 'failed' ? undefined : set;
  }

  *generateInSteps(typeUrl: string): Steps<void> {
    const preparation = this.#tryGet(typeUrl, () => this.#client?.resources.prepare?.(typeUrl, '*'));
    if (preparation === undefined || preparation === 'failed') return;
    while (this.#tryGet(typeUrl, () => preparation.runStep()) === true) yield;
  }

  onReport(report: AdsStreamReport): void {
    this.#options.onReport(report);
  }

  onRolloutEvent(event: RolloutEvent): void {
    this.#options.onRolloutEvent(event);
  }

  sharedNames(names: readonly string[]): readonly string[] {
    return this.#context.nameLists.intern(names);
  }

  get observer(): AdsObserver {
    return this.#context.observer;
  }

  setClient(client: KnownClient): void {
    this.#client = client;
  }

  send(orders: readonly ResponseOrder[]): void {
    for (const order of orders) this.#orders.push(this.#prepareOrder(order));
    this.#sendDueResponses();
  }

  stop(): void {
    const resources = this.gate?.resources;
    if (resources !== undefined && this.#client !== undefined)
      this.#context.makeBeforeBreak?.departedClusters.add(this.#client.node, resources, this.now());
    this.#orders = [];
    this.#sentByType.clear();
    this.#client = undefined;
  }

  #sendDueResponses(): void {
    while (this.#orders.length > 0 && this.#unflushedBytes <= maxUnflushedBytes) {
      const { order, set } = this.#orders[0]!;
      if (set === 'building') break;
      this.#orders.shift();
      this.#process(order, set);
    }
    const isCongested = this.#orders.length > 0;
    if (isCongested === this.#isCongested) return;
    this.#isCongested = isCongested;
    this.#options.onCongestionChange(isCongested);
  }

  /** Uses the resources at the time of the order. */
  #prepareOrder(order: ResponseOrder): WaitingOrder {
    const { typeUrl, names } = order;
    if (isOneTimeType(typeUrl) || typeUrl === secretType) return { order, set: undefined };
    if (order.again !== undefined) {
      return { order, set: { version: order.again, resources: this.sentResourcesOf(typeUrl).resources } };
    }
    const preparation = this.#tryGet(typeUrl, () => this.#client?.resources.prepare?.(typeUrl, names));
    if (preparation === 'failed') return { order, set: 'failed' };
    if (preparation !== undefined) return this.#buildInSteps(order, preparation);
    const set = this.#getMeasured(typeUrl, () => this.#client?.resources.get(typeUrl, names));
    const gateSteps = this.#gateSteps(order, set);
    if (gateSteps === undefined || !this.#step(gateSteps)) return { order, set };
    return this.#buildInTurns(order, () => (this.#step(gateSteps) ? 'building' : set));
  }

  #buildInSteps(order: ResponseOrder, preparation: ResourcePreparation): WaitingOrder {
    const { observer } = this.#context;
    const { typeUrl } = order;
    let ms = 0;
    let set: ResponseSet | 'building' = 'building';
    let gateSteps: Steps<void> | undefined;
    return this.#buildInTurns(order, () => {
      if (gateSteps !== undefined && this.#step(gateSteps)) return 'building';
      if (set !== 'building') {
        observer.resourcesGenerated?.(typeUrl, ms);
        return set;
      }
      const startedAt = performance.now();
      const hasMore = this.#tryGet(typeUrl, () => preparation.runStep());
      if (hasMore === false) set = this.#tryGet(typeUrl, () => preparation.result());
      else if (hasMore === 'failed') set = hasMore;
      if (set !== 'building') gateSteps = this.#gateSteps(order, set);
      ms += performance.now() - startedAt;
      // Comparing and writing is a separate step: a list of thousands takes milliseconds.
      return 'building';
    });
  }

  /** @param buildSlice returns the resource set when it is complete */
  #buildInTurns(order: ResponseOrder, buildSlice: () => ResponseSet | 'building'): WaitingOrder {
    const waitingOrder: WaitingOrder = { order, set: 'building' };
    this.#context.turns.startWork(() => {
      if (this.#client === undefined) return false;
      waitingOrder.set = buildSlice();
      if (waitingOrder.set === 'building') return true;
      this.#options.runGuarded(() => this.#sendDueResponses());
      return false;
    }, this.#options.isServed());
    return waitingOrder;
  }

  #gateSteps(order: ResponseOrder, set: ResponseSet): Steps<void> | undefined {
    return set === undefined || set === 'failed' ? undefined : this.gate?.precomputeInSteps(order, set);
  }

  /**
   * An error closes the stream.
   *
   * @returns whether there are more steps
   */
  #step(steps: Steps<void>): boolean {
    const step: { done?: boolean } = { done: true };
    this.#options.runGuarded(() => Object.assign(step, steps.next()));
    return step.done === false;
  }

  #process(order: ResponseOrder, set: ResponseSet): void {
    const { typeUrl } = order;
    if (isOneTimeType(typeUrl)) this.#respondOnce(order);
    else if (typeUrl === secretType && this.#shouldRejectSecrets()) this.#skip(typeUrl, 'not served');
    else if (typeUrl === secretType) this.#respondWithSecrets(order);
    else this.#respondFromSet(order, set);
  }

  /** Sends no response for missing Secrets: after a removal, Envoy would use the cluster or listener without the Secret. */
  #respondWithSecrets(order: ResponseOrder): void {
    const { typeUrl } = order;
    const set = this.#getMeasured(typeUrl, () => this.#client?.resources.get(typeUrl, order.names));
    if (this.gate === undefined || set === undefined || set === 'failed') {
      this.#respondFromSet(order, set);
      return;
    }
    const availableOrder = omitMissing(order, set, this.sentResourcesOf(typeUrl));
    if (availableOrder === undefined) this.#skip(typeUrl, 'unchanged');
    else this.#respondFromSet(availableOrder, set);
  }

  #respondFromSet(order: ResponseOrder, set: ResourceSet | undefined | 'failed'): void {
    const { typeUrl } = order;
    if (set === undefined || set === 'failed') {
      this.#skip(typeUrl, set ?? 'not served');
      return;
    }
    const preparedResponse = this.gate === undefined ? { order, set } : this.gate.prepare(order, set);
    if (preparedResponse === undefined) {
      this.#skip(typeUrl, 'held');
      return;
    }
    const selection = this.sentResourcesOf(typeUrl).selectResources(preparedResponse.order, preparedResponse.set);
    if (selection === undefined) {
      this.#skip(typeUrl, 'unchanged');
      return;
    }
    if (typeUrl === clusterType && this.#context.rules.resendsEndpoints)
      this.sentResourcesOf(endpointType).forgetNames(selection.changedNames);
    this.#respond(preparedResponse.order, preparedResponse.set.version, selection);
  }

  /** The response is not recorded as sent. */
  #respondOnce(order: ResponseOrder): void {
    const { typeUrl, names } = order;
    const result = this.#getMeasured(typeUrl, () => {
      const { node, identities, isSecure } = this.#client!;
      const requestedNames = names === '*' ? [] : names;
      return this.#context.oneShot?.({ typeUrl, names: requestedNames, node, identities, isSecure });
    });
    if (!(result instanceof Promise)) {
      this.#sendOnce(order, result);
      return;
    }
    result
      .catch((error: unknown) => this.#reportFailure(typeUrl, error))
      .then(
        (laterOrder) => this.#client !== undefined && this.#options.runGuarded(() => this.#sendOnce(order, laterOrder)),
      );
  }

  #sendOnce(order: ResponseOrder, result: OneShotResponse | undefined | 'failed'): void {
    const { typeUrl } = order;
    if (result === undefined || result === 'failed') this.#skip(typeUrl, result ?? 'not served');
    else if ('code' in result) {
      this.#options.onReport({ type: 'request.denied', code: result.code, reason: shortenText(result.reason) });
    } else {
      const { version, resources } = result;
      this.#respond(order, version, { resources, removedNames: [], changedNames: 'all', addedNames: [] });
    }
  }

  #getMeasured<Answer>(typeUrl: string, getValue: () => Answer): Answer | 'failed' {
    const startedAt = performance.now();
    const result = this.#tryGet(typeUrl, getValue);
    this.#context.observer.resourcesGenerated?.(typeUrl, performance.now() - startedAt);
    return result;
  }

  #tryGet<Answer>(typeUrl: string, getValue: () => Answer): Answer | 'failed' {
    try {
      return getValue();
    } catch (error) {
      return this.#reportFailure(typeUrl, error);
    }
  }

  #reportFailure(typeUrl: string, error: unknown): 'failed' {
    const { observer, logger } = this.#context;
    const node = this.#client?.node.id ?? '';
    observer.sourceFailed?.(typeUrl, node, error);
    logger.error('resources.failed', { node: shortenText(node), typeUrl, reason: shortenText(messageOf(error)) });
    return 'failed';
  }

  /** Only identified clients receive Secrets, unless the port requires no authentication. */
  #shouldRejectSecrets(): boolean {
    if (this.#client === undefined || this.#client.identities.length > 0) return false;
    if (this.#client.node.secretsUnverified === true) return false;
    if (!this.#haveSecretsBeenRejected) {
      this.#haveSecretsBeenRejected = true;
      const { peer } = this.#options;
      const node = shortenText(this.#client.node.id);
      this.#context.logger.warn('secrets.withheld', { node, peer });
    }
    return true;
  }

  #respond(order: ResponseOrder, version: string, selection: ResponseSelection): void {
    const { resources, removedNames } = selection;
    const { number, method, isDelta, onReport } = this.#options;
    const { typeUrl } = order;
    // The nonce is unique in this process, so that in a log it identifies the response.
    const nonce = nonceOf(version, number, ++this.#responses);
    const count = countOf(resources);
    const controlPlane = this.#context.controlPlane?.[isDelta ? 'deltaField' : 'sotwField'];
    const responseHead = { typeUrl, version, nonce, removedNames, ...(controlPlane !== undefined && { controlPlane }) };
    const bytes = this.#write(responseHead, resources);
    const cause = order.all || order.requested.length > 0 ? 'request' : 'push';
    this.#context.observer.responseSent?.(typeUrl, { cause, resources: count, bytes });
    this.#context.observer.messageSent?.(method);
    const sentAt = this.#context.now();
    this.gate?.onSent(order, version, selection, nonce);
    this.#client?.resources.sent?.(typeUrl, version, cause);
    const responseSizes = { resources: count, removed: removedNames.length, sentAt };
    onReport({ type: 'response.sent', typeUrl, nonce, version, ...responseSizes, ...this.#awaits(typeUrl) });
  }

  #write(responseHead: ResponseHead, resources: ResponseResources): number {
    const { transport, isDelta, onBroken } = this.#options;
    const { observer, bodies } = this.#context;
    const frameParts = { head: encodeHead(responseHead), trailingChunks: bodies.framesOf(resources, isDelta) };
    // Counted first, because a write may be flushed before it returns.
    const length = byteLengthOf(frameParts);
    this.#unflushedBytes += length;
    const startedAt = performance.now();
    countSocketBytes(length);
    transport.send(frameParts, (error) => {
      this.#unflushedBytes -= length;
      if (error) {
        if (this.#client === undefined || isClientDisconnected(error)) return;
        observer.sendFailed?.(responseHead.typeUrl, this.#client.node.id, error);
        onBroken(error);
        return;
      }
      observer.responseFlushed?.(responseHead.typeUrl, performance.now() - startedAt);
      if (this.#orders.length > 0) this.#options.runGuarded(() => this.#sendDueResponses());
    });
    return length;
  }

  #skip(typeUrl: string, reason: ResponseSkipped['reason']): void {
    this.#options.onReport({ type: 'response.skipped', typeUrl, reason, ...this.#awaits(typeUrl) });
  }

  #awaits(typeUrl: string): Pick<ResponseSkipped, 'awaits'> {
    const awaitedNames = this.gate?.awaitedClusters(typeUrl) ?? [];
    return awaitedNames.length === 0 ? {} : { awaits: awaitedNames };
  }

  sentResourcesOf(typeUrl: string): SentResources {
    let sentResources = this.#sentByType.get(typeUrl);
    if (sentResources === undefined) {
      sentResources = new SentResources(this.#options.isDelta);
      this.#sentByType.set(typeUrl, sentResources);
    }
    return sentResources;
  }
}
