/**
 * A bounded history of pushes for `/debug/changes` and `pilot-discovery changes`. Endpoint pushes have a separate ring, because they are frequent.
 */

import { type Config, parseConfigKey } from '../../model/config/config.ts';
import { needsPush } from '../../model/config/config-changes.ts';
import type { ConfigSnapshot } from '../config/snapshots/config-snapshot.ts';
import { placeText } from '../config/sources/config-problem.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import type { MeshNode, ResponseListener } from '../push/mesh-resources.ts';
import type { ObjectEvent } from '../registry/service-objects.ts';
import type { ResponseCause } from '../xds/resource-source.ts';
import { shortType } from '../xds/short-type.ts';
import { shortenText } from '../xds/stream/client-text.ts';
import {
  BoundedList,
  createPushRecord,
  itemBytes,
  maxNames,
  type PushRecord,
  type RecordedChange,
  type UnpushedRejection,
} from './push-record.ts';
import { RecordRing, type RingLimits } from './record-ring.ts';

export interface HistoryLimits {
  readonly configuration: RingLimits;
  readonly endpoints: RingLimits;
}

export const defaultHistoryLimits: HistoryLimits = {
  configuration: { maxRecords: 1_000, maxBytes: 4 * 1024 * 1024 },
  endpoints: { maxRecords: 500, maxBytes: 1024 * 1024 },
};

export interface ChangeHistoryOptions {
  readonly limits?: HistoryLimits;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
  /** Returns an object that only the registry reads, such as a Service. */
  readonly objectOf?: (key: string) => Config | undefined;
}

interface ProxyPush {
  readonly record: PushRecord;
  /** Bitmap with one bit per type. */
  unacknowledgedTypes: number;
  /** Bitmap of types whose last response was sent by this push or an earlier one. */
  pushedTypes: number;
  state: 'pending' | 'acknowledged' | 'rejected';
}

interface ClientRejection {
  readonly namespace: string;
  /** Empty if clients are not authenticated. */
  readonly account: string;
  readonly rejection: UnpushedRejection;
}

const changes: Readonly<Record<ObjectEvent['event'], RecordedChange['change']>> = {
  add: 'added',
  update: 'changed',
  delete: 'removed',
};

const endpointKinds: ReadonlySet<string> = new Set(['Pod', 'Node', 'EndpointSlice', 'Endpoints', 'WorkloadEntry']);

/** Further types share the last bit. */
const maxTypeBits = 30;

const maxUnpushedRejections = 100;

export class ChangeHistory implements ResponseListener {
  readonly #now: () => number;
  readonly #objectOf: (key: string) => Config | undefined;
  readonly #configuration: RecordRing;
  readonly #endpoints: RecordRing;
  #lastObjects: ConfigSnapshot | undefined;
  #events = new BoundedList<ObjectEvent>(maxNames.objects);
  #firstChangeAt: number | undefined;
  #pushes = new WeakMap<MeshNode, ProxyPush>();
  readonly #typeBits = new Map<string, number>();
  /**
   * The last rejection of each client, proxy and type, so that a proxy that connects repeatedly does not evict rejections of others. Oldest first.
   */
  readonly #unpushedRejections = new Map<string, ClientRejection>();

  constructor({
    limits = defaultHistoryLimits,
    now = Date.now,
    objectOf = () => undefined,
  }: ChangeHistoryOptions = {}) {
    this.#now = now;
    this.#objectOf = objectOf;
    this.#configuration = new RecordRing(limits.configuration);
    this.#endpoints = new RecordRing(limits.endpoints);
  }

  /** Oldest first, including pushes of endpoints only. */
  get records(): readonly PushRecord[] {
    const allRecords = [...this.#configuration.records, ...this.#endpoints.records];
    return allRecords.sort((one, other) => one.number - other.number);
  }

  /** Oldest first. */
  get unpushedRejections(): readonly UnpushedRejection[] {
    return [...this.#unpushedRejections.values()].map(({ rejection }) => rejection);
  }

  get occupancy(): Readonly<Record<keyof HistoryLimits, { pushes: number; bytes: number; evicted: number }>> {
    const occupancyOf = ({ size, bytes, evictedCount }: RecordRing) => ({ pushes: size, bytes, evicted: evictedCount });
    return { configuration: occupancyOf(this.#configuration), endpoints: occupancyOf(this.#endpoints) };
  }

  /** Call before the push that contains the change. */
  recordConfigChange(): void {
    this.#firstChangeAt ??= this.#now();
  }

  /** Call before the push that contains the objects. */
  recordEvents(events: readonly ObjectEvent[]): void {
    if (events.length === 0) return;
    this.recordConfigChange();
    for (const event of events) this.#events.add(event);
  }

  recordPublication({ context, previous, forced, changedKeys, appliedConfigs, objects }: Publication): void {
    const record = createPushRecord({
      version: context.version,
      publishedAt: this.#now(),
      isFirst: previous === undefined,
      full: forced,
      ...(this.#firstChangeAt !== undefined && { firstChangeAt: this.#firstChangeAt }),
    });
    this.#firstChangeAt = undefined;
    if (previous === undefined) record.objects.count = appliedConfigs.byKey.size;
    else {
      if (previous.mesh !== context.mesh) {
        addItem(record, record.objects, { kind: 'MeshConfig', namespace: '', name: 'mesh', change: 'changed' });
      }
      this.#addObjects(record, objects, appliedConfigs);
      this.#addNames(record, changedKeys);
    }
    this.#lastObjects = appliedConfigs;
    this.#events = new BoundedList(maxNames.objects);
    record.isOfEndpoints = hasOnlyEndpoints(record);
    this.#ringOf(record).add(record);
  }

  #addObjects(record: PushRecord, objects: readonly string[], shownSnapshot: ConfigSnapshot): void {
    const previousObject = this.#lastObjects;
    const keys = new Set(objects);
    for (const key of keys) {
      // Comparing objects is expensive, so objects beyond the limit are only counted.
      if (record.objects.items.length === maxNames.objects) break;
      keys.delete(key);
      const [previousConfig, current] = [previousObject?.byKey.get(key), shownSnapshot.byKey.get(key)];
      if (previousConfig === current) continue;
      if (previousConfig !== undefined && current !== undefined && !needsPush(previousConfig, current)) continue;
      addItem(record, record.objects, changedObject(key, previousConfig, current));
    }
    record.objects.count += keys.size;
    for (const { key, event } of this.#events.items) {
      const { resourceVersion } = this.#objectOf(key) ?? {};
      addItem(record, record.objects, {
        ...parseConfigKey(key),
        change: changes[event],
        ...(event !== 'delete' && resourceVersion && { resourceVersion }),
      });
    }
    record.objects.count += this.#events.more;
  }

  /** Adds services and endpoints, and objects without a source, such as Secrets that a proxy uses. */
  #addNames(record: PushRecord, changedKeys: Iterable<string>): void {
    const listedObjects = new Set(
      record.objects.items.map(({ kind, namespace, name }) => `${kind}/${namespace}/${name}`),
    );
    for (const key of changedKeys) {
      const kind = key.slice(0, key.indexOf('/'));
      if (kind !== 'Endpoints' && (listedObjects.has(key) || (kind !== 'ServiceEntry' && record.objects.more > 0)))
        continue;
      const { namespace, name } = parseConfigKey(key);
      if (kind === 'Endpoints') addItem(record, record.endpoints, `${namespace}/${name}`);
      else if (kind === 'ServiceEntry') addItem(record, record.services, `${namespace}/${name}`);
      else addItem(record, record.objects, { kind, namespace, name, change: 'changed' });
    }
  }

  onSent(node: MeshNode, typeUrl: string, version: string, cause: ResponseCause): void {
    const typeBit = this.#bitOf(typeUrl);
    if (cause === 'request') {
      const lastPush = this.#pushes.get(node);
      if (lastPush !== undefined) lastPush.pushedTypes &= ~typeBit;
      return;
    }
    // The response contains resources that were not ready when the proxy connected, such as Secrets whose access had to be decided.
    if (version === node.connectVersion) return;
    const record = this.#recordOf(version);
    if (record === undefined) return;
    const push = this.#pushTo(node, record);
    push.unacknowledgedTypes |= typeBit;
    push.pushedTypes |= typeBit;
    if (push.state === 'acknowledged') setPushState(push, 'pending');
  }

  onAcknowledged(node: MeshNode, typeUrl: string, version: string): void {
    const push = this.#pushes.get(node);
    // The ACK can be for an earlier push: a response that waits for an ACK is sent before that ACK is reported.
    if (push?.record.version !== version) return;
    this.#recordResponse(push, typeUrl);
    if (push.unacknowledgedTypes === 0 && push.state === 'pending') setPushState(push, 'acknowledged');
  }

  onRejected(node: MeshNode, typeUrl: string): void {
    const watch = node.watches[typeUrl];
    const record = watch && this.#recordOf(watch.versionSent);
    const push = this.#pushes.get(node);
    if (push !== undefined) {
      this.#recordResponse(push, typeUrl);
      if (push.record === record && push.state !== 'rejected') setPushState(push, 'rejected');
    }
    if (watch === undefined) return;
    const rejection = {
      at: new Date(this.#now()).toISOString(),
      proxy: shortenText(node.proxy.id),
      type: shortType(typeUrl),
      reason: shortenText(watch.lastError),
    };
    const receivedOn = watch.versionSent === node.connectVersion ? 'connect' : 'request';
    if (receivedOn === 'connect' || !this.#isOfPush(push, typeUrl, record)) {
      const { account = '', proxy } = node;
      this.#addUnpushedRejection({
        namespace: proxy.configNamespace,
        account,
        rejection: { ...rejection, receivedOn },
      });
    } else if (record?.rejections.add(rejection)) this.#ringOf(record).recordGrowth(record, itemBytes(rejection));
  }

  /** A response to a request belongs to the push that caused the request, such as for the routes of a pushed listener. */
  #isOfPush(push: ProxyPush | undefined, typeUrl: string, record: PushRecord | undefined): boolean {
    if (push === undefined) return false;
    return push.record === record || (push.pushedTypes & this.#bitOf(typeUrl)) !== 0;
  }

  /** If the list is full, evicts the oldest entry of the largest account in the largest namespace. */
  #addUnpushedRejection(added: ClientRejection): void {
    const { account, rejection } = added;
    const key = `${account} ${rejection.proxy} ${rejection.type}`;
    this.#unpushedRejections.delete(key);
    this.#unpushedRejections.set(key, added);
    if (this.#unpushedRejections.size <= maxUnpushedRejections) return;
    const ofNamespaces = inLargestShare([...this.#unpushedRejections], ([, { namespace }]) => namespace);
    const [oldest] = inLargestShare(ofNamespaces, ([, { namespace, account }]) => `${namespace} ${account}`);
    this.#unpushedRejections.delete(oldest![0]);
  }

  disconnected(node: MeshNode): void {
    const push = this.#pushes.get(node);
    this.#pushes.delete(node);
    if (push?.state === 'pending') abandonPending(push);
  }

  /** Yields the node IDs of proxies that have not responded to this push. */
  *pendingAt(record: PushRecord, nodes: Iterable<MeshNode>): Iterable<string> {
    if (record.proxies.pending === 0) return;
    for (const node of nodes) {
      const push = this.#pushes.get(node);
      if (push?.record === record && push.state === 'pending') yield node.proxy.id;
    }
  }

  #pushTo(node: MeshNode, record: PushRecord): ProxyPush {
    const lastPush = this.#pushes.get(node);
    if (lastPush?.record === record) return lastPush;
    if (lastPush?.state === 'pending') abandonPending(lastPush);
    const push: ProxyPush = {
      record,
      unacknowledgedTypes: 0,
      pushedTypes: lastPush?.pushedTypes ?? 0,
      state: 'pending',
    };
    this.#pushes.set(node, push);
    record.proxies.pushed++;
    record.proxies.pending++;
    const name = shortenText(node.proxy.id);
    if (record.pushedTo.add(name)) this.#ringOf(record).recordGrowth(record, itemBytes(name));
    return push;
  }

  #recordResponse(push: ProxyPush, typeUrl: string): void {
    const bit = this.#bitOf(typeUrl);
    if ((push.unacknowledgedTypes & bit) === 0) return;
    push.unacknowledgedTypes &= ~bit;
    push.record.lastResponseAt = this.#now();
  }

  #bitOf(typeUrl: string): number {
    let typeBit = this.#typeBits.get(typeUrl);
    if (typeBit === undefined) {
      if (this.#typeBits.size >= maxTypeBits) return 1 << maxTypeBits;
      typeBit = 1 << this.#typeBits.size;
      this.#typeBits.set(typeUrl, typeBit);
    }
    return typeBit;
  }

  #recordOf(version: string): PushRecord | undefined {
    return this.#configuration.get(version) ?? this.#endpoints.get(version);
  }

  #ringOf({ isOfEndpoints }: PushRecord): RecordRing {
    return isOfEndpoints ? this.#endpoints : this.#configuration;
  }
}

/** Returns the items of the largest shares, in their original order. */
function inLargestShare<Item>(items: readonly Item[], shareOf: (item: Item) => string): Item[] {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(shareOf(item), (counts.get(shareOf(item)) ?? 0) + 1);
  const max = Math.max(...counts.values());
  return items.filter((item) => counts.get(shareOf(item)) === max);
}

function hasOnlyEndpoints({ full, isFirst, objects, services }: PushRecord): boolean {
  if (full || isFirst || services.count > 0 || objects.more > 0) return false;
  return objects.items.every(({ kind }) => endpointKinds.has(kind));
}

function changedObject(key: string, previousConfig: Config | undefined, current: Config | undefined): RecordedChange {
  const change = previousConfig === undefined ? 'added' : current === undefined ? 'removed' : 'changed';
  const { source } = current ?? previousConfig!;
  const location = source && placeText(source);
  return {
    ...parseConfigKey(key),
    change,
    ...(location !== undefined && { source: location }),
    ...(location === undefined && current !== undefined && { resourceVersion: current.resourceVersion }),
  };
}

function addItem<Item extends string | object>(record: PushRecord, list: BoundedList<Item>, item: Item): void {
  if (list.add(item)) record.bytes += itemBytes(item);
}

function setPushState(push: ProxyPush, state: ProxyPush['state']): void {
  push.record.proxies[push.state]--;
  push.record.proxies[state]++;
  push.state = state;
}

function abandonPending({ record: { proxies } }: ProxyPush): void {
  proxies.pending--;
  proxies.unanswered++;
}
