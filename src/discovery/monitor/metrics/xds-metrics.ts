import { status } from '@grpc/grpc-js';
import { Gauge, type Registry } from 'prom-client';
import { isOneTimeType, isWatchable } from '../../../../machines/discovery/xds/ads-types.ts';
import { initialSlots } from '../../../../machines/discovery/xds/stream-admission.machine.ts';
import { pushedTypeOf } from '../../../model/proxy/types-to-push.ts';
import { labelValue } from '../../../runtime/label-value.ts';
import type { AdmissionView, AdsObserver } from '../../xds/ads-observer.ts';
import { CounterByKey, HistogramByKey, type KeyLabels, labelNamesOf } from './cheap-metrics.ts';

const pushBounds = [0.01, 0.1, 0.5, 1, 3, 5, 10, 20, 30];
const sendBounds = [0.01, 0.1, 1, 3, 5, 10, 20, 30];
const waitBounds = [0.1, 0.5, 1, 3, 5, 10, 20, 30];
const sizeBounds = [1, 10_000, 1_000_000, 4_000_000, 10_000_000, 40_000_000];
/** Maximum number of label sets, because a thousand proxies can reject a thousand different resources. */
const maxRejections = 10_000;
const maxReasonLength = 200;

interface Rejection {
  readonly gauge: Gauge<'node' | 'err'>;
  readonly labels: { readonly node: string; readonly err: string };
}

export class XdsMetrics implements AdsObserver {
  readonly #pushes: CounterByKey;
  readonly #rejectCounter: CounterByKey;
  readonly #expiredNonces: CounterByKey;
  readonly #internalErrors: CounterByKey;
  readonly #writeTimeouts: CounterByKey;
  readonly #configSize: HistogramByKey;
  readonly #pushTime: HistogramByKey;
  readonly #sendTime: HistogramByKey;
  readonly #requestTime: HistogramByKey;
  readonly #queueTime: HistogramByKey;
  readonly #convergence: HistogramByKey;
  readonly #startedCounter: CounterByKey;
  readonly #handledCounter: CounterByKey;
  readonly #messagesSent: CounterByKey;
  readonly #messagesReceived: CounterByKey;
  readonly #refusedCounter: CounterByKey;
  readonly #heldOffCounter: CounterByKey;
  readonly #refusedStreams: CounterByKey;
  #admission: AdmissionView = { streams: 0, connections: 0, slots: initialSlots };
  readonly #abandonedCounter: CounterByKey;
  readonly #evictedCounter: CounterByKey;
  #waitingCount = 0;
  readonly #retainedCounts = new Map<string, number>(
    ['named', 'unacknowledged', 'lingering', 'removable'].map((reason) => [reason, 0]),
  );
  #abandonedCount = 0;
  readonly #rejectGauges: ReadonlyMap<string, Gauge<'node' | 'err'>>;
  /** A proxy is counted with its last rejection of a type. */
  readonly #rejections = new Map<string, Map<string, Rejection>>();
  #rejectionCount = 0;
  #largestRequest = 0;

  constructor(registry: Registry) {
    const createCounter = (name: string, help: string, label: string): CounterByKey =>
      new CounterByKey(registry, { name, help }, labelNamesOf(label));
    const createUnlabelledCounter = (name: string, help: string): CounterByKey => {
      const counter = new CounterByKey(registry, { name, help });
      counter.add('', 0);
      return counter;
    };
    const seconds = (name: string, help: string, bounds: readonly number[], label?: string): HistogramByKey =>
      new HistogramByKey(registry, { name, help }, bounds, label === undefined ? undefined : labelNamesOf(label));
    this.#pushes = createCounter(
      'pilot_xds_pushes',
      'xDS responses sent, by type; TYPE_senderr: failed to send',
      'type',
    );
    this.#rejectCounter = createCounter(
      'pilot_total_xds_rejects',
      'xDS responses that proxies rejected (NACK)',
      'type',
    );
    this.#expiredNonces = createCounter(
      'pilot_xds_expired_nonce',
      'xDS requests with the nonce of an earlier response',
      'type',
    );
    this.#internalErrors = createUnlabelledCounter(
      'pilot_total_xds_internal_errors',
      'xDS resources that could not be built',
    );
    this.#writeTimeouts = createUnlabelledCounter(
      'pilot_xds_write_timeout',
      'xDS responses that a client did not read in time',
    );
    this.#refusedCounter = createCounter(
      'pilot_xds_refused_connections_total',
      'Connections to the xDS ports that were rejected, or closed because of a limit',
      'reason',
    );
    this.#heldOffCounter = createUnlabelledCounter(
      'pilot_xds_held_off_total',
      'Times that an address was throttled for too many connections or streams without a node',
    );
    this.#refusedStreams = createUnlabelledCounter(
      'pilot_xds_refused_streams_total',
      'xDS streams that were rejected because too many others waited, or because they waited too long',
    );
    const waitingClients: Gauge<'stage'> = new Gauge({
      name: 'pilot_xds_waiting_clients',
      help: 'Clients that wait until they may connect, by stage: connection (before its set-up) or stream',
      labelNames: ['stage'],
      registers: [registry],
      collect: () => {
        waitingClients.set({ stage: 'connection' }, this.#admission.connections);
        waitingClients.set({ stage: 'stream' }, this.#admission.streams);
      },
    });
    const slots: Gauge = new Gauge({
      name: 'pilot_xds_admission_slots',
      help: 'Clients that may connect at a time, by the load of the control plane',
      registers: [registry],
      collect: () => slots.set(this.#admission.slots),
    });
    this.#abandonedCounter = createUnlabelledCounter(
      'pilot_xds_abandoned_clusters_total',
      'Clusters that a proxy did not warm in time; listeners and routes that waited for them were sent',
    );
    this.#evictedCounter = createUnlabelledCounter(
      'pilot_xds_evicted_clusters_total',
      'Removed clusters that were evicted early because a proxy kept too many',
    );
    const waitingGauge: Gauge = new Gauge({
      name: 'pilot_xds_waiting_for_clusters',
      help: 'Proxies whose listeners or routes wait for clusters to warm',
      registers: [registry],
      collect: () => waitingGauge.set(this.#waitingCount),
    });
    const retainedClusterGauge: Gauge<'reason'> = new Gauge({
      name: 'pilot_xds_kept_clusters',
      help: 'Clusters that are not configured and that proxies keep, by reason; each proxy counts',
      labelNames: ['reason'],
      registers: [registry],
      collect: () => {
        for (const [reason, count] of this.#retainedCounts) retainedClusterGauge.set({ reason }, count);
      },
    });
    const abandonedGauge: Gauge = new Gauge({
      name: 'pilot_xds_given_up_clusters',
      help: 'Clusters that were not usable in time and are sent with a time limit for what they fetch; each proxy counts',
      registers: [registry],
      collect: () => abandonedGauge.set(this.#abandonedCount),
    });
    this.#configSize = new HistogramByKey(
      registry,
      { name: 'pilot_xds_config_size_bytes', help: 'Size of xDS responses in bytes' },
      sizeBounds,
      labelNamesOf('type'),
    );
    this.#pushTime = seconds('pilot_xds_push_time', 'Seconds to build an xDS response', pushBounds, 'type');
    this.#sendTime = seconds('pilot_xds_send_time', 'Seconds to send an xDS response', sendBounds);
    this.#requestTime = seconds('pilot_xds_request_time', 'Seconds to process an xDS request', sendBounds);
    this.#queueTime = seconds(
      'pilot_proxy_queue_time',
      'Seconds that a push waited in the queue of a proxy',
      waitBounds,
    );
    this.#convergence = seconds(
      'pilot_proxy_convergence_time',
      'Seconds from the start of a push, after the debounce, until the stream of a proxy has accepted it; types that wait for an ACK follow',
      waitBounds,
    );
    const grpc = (name: string, help: string, ...otherLabels: string[]): CounterByKey =>
      new CounterByKey(registry, { name, help }, methodLabels(otherLabels));
    this.#startedCounter = grpc('grpc_server_started_total', 'gRPC streams opened');
    this.#handledCounter = grpc('grpc_server_handled_total', 'gRPC streams ended, by status code', 'grpc_code');
    this.#messagesSent = grpc('grpc_server_msg_sent_total', 'Messages sent on gRPC streams');
    this.#messagesReceived = grpc('grpc_server_msg_received_total', 'Messages received on gRPC streams');
    const largestGauge: Gauge = new Gauge({
      name: 'pilot_xds_recv_max',
      help: 'Largest xDS request in bytes',
      registers: [registry],
      collect: () => largestGauge.set(this.#largestRequest),
    });
    this.#rejectGauges = new Map(
      ['cds', 'eds', 'lds', 'rds'].map((type) => [
        type,
        new Gauge({
          name: `pilot_xds_${type}_reject`,
          help: `Proxies that reject their ${type.toUpperCase()}`,
          labelNames: ['node', 'err'],
          registers: [registry],
        }),
      ]),
    );
  }

  responseSent(typeUrl: string, { bytes }: { bytes: number }): void {
    this.#pushes.add(this.#shortType(typeUrl));
    this.#configSize.observe(bytes, isWatchable(typeUrl) ? typeUrl : this.#shortType(typeUrl));
  }

  connectionRefused(reason: string): void {
    this.#refusedCounter.add(labelValue(reason));
  }

  addressHeldOff(): void {
    this.#heldOffCounter.add('');
  }

  admissionMeasured(view: AdmissionView): void {
    this.#admission = view;
  }

  streamRefused(): void {
    this.#refusedStreams.add('');
  }

  clustersAwaited(isWaiting: boolean): void {
    this.#waitingCount += isWaiting ? 1 : -1;
  }

  clustersAbandoned(clusters: number): void {
    this.#abandonedCounter.add('', clusters);
  }

  clustersRetained(reason: string, change: number): void {
    this.#retainedCounts.set(reason, (this.#retainedCounts.get(reason) ?? 0) + change);
  }

  clustersGivenUp(change: number): void {
    this.#abandonedCount += change;
  }

  clustersEvicted(clusters: number): void {
    this.#evictedCounter.add('', clusters);
  }

  messageSent(method: string): void {
    this.#messagesSent.add(method);
  }

  responseRejected(typeUrl: string, node: string, reason: string): void {
    const type = this.#shortType(typeUrl);
    this.#rejectCounter.add(type);
    const gauge = this.#rejectGauges.get(type);
    if (gauge === undefined) return;
    const nodeRejections = this.#rejections.get(node) ?? new Map<string, Rejection>();
    const previous = nodeRejections.get(type);
    if (previous !== undefined) this.#removeRejection(previous);
    else if (this.#rejectionCount >= maxRejections) return;
    const rejection = { gauge, labels: { node, err: reason.slice(0, maxReasonLength) } };
    gauge.set(rejection.labels, 1);
    this.#rejectionCount++;
    this.#rejections.set(node, nodeRejections.set(type, rejection));
  }

  clientDisconnected(node: string): void {
    const nodeRejections = this.#rejections.get(node);
    if (nodeRejections === undefined) return;
    for (const rejection of nodeRejections.values()) this.#removeRejection(rejection);
    this.#rejections.delete(node);
  }

  nonceExpired(typeUrl: string): void {
    this.#expiredNonces.add(this.#shortType(typeUrl));
  }

  sourceFailed(): void {
    this.#internalErrors.add('');
  }

  resourcesGenerated(typeUrl: string, ms: number): void {
    this.#pushTime.observe(ms / 1_000, this.#shortType(typeUrl));
  }

  responseFlushed(_typeUrl: string, ms: number): void {
    this.#sendTime.observe(ms / 1_000);
  }

  requestTaken(_typeUrl: string, ms: number): void {
    this.#requestTime.observe(ms / 1_000);
  }

  sendFailed(typeUrl: string, _node: string, error: Error): void {
    this.#pushes.add(`${this.#shortType(typeUrl)}_senderr`);
    if ((error as { code?: unknown }).code === status.DEADLINE_EXCEEDED) this.#writeTimeouts.add('');
  }

  queueTime(ms: number): void {
    this.#queueTime.observe(ms / 1_000);
  }

  proxyConverged(ms: number): void {
    this.#convergence.observe(ms / 1_000);
  }

  /** @param method `/package.Service/Method` */
  streamOpened(method: string): void {
    this.#startedCounter.add(method);
  }

  streamClosed(method: string, code: string): void {
    this.#handledCounter.add(`${method} ${code}`);
  }

  requestReceived(method: string, bytes: number): void {
    this.#messagesReceived.add(method);
    if (bytes > this.#largestRequest) this.#largestRequest = bytes;
  }

  #removeRejection({ gauge, labels }: Rejection): void {
    gauge.remove(labels);
    this.#rejectionCount--;
  }

  /** Unknown types share one name, because clients choose them. */
  #shortType(typeUrl: string): string {
    return pushedTypeOf(typeUrl)?.toLowerCase() ?? (isOneTimeType(typeUrl) ? 'debug' : 'other');
  }
}

/** `/package.Service/Method`, optionally followed by a space and a code. */
function methodLabels(otherLabels: readonly string[]): KeyLabels {
  return {
    names: ['grpc_type', 'grpc_service', 'grpc_method', ...otherLabels],
    labelsOf: (key) => {
      const [path = '', code] = key.split(' ');
      const [, service = '', method = ''] = path.split('/');
      const labels = { grpc_type: 'bidi_stream', grpc_service: service, grpc_method: method };
      return code === undefined ? labels : { ...labels, grpc_code: code };
    },
  };
}
