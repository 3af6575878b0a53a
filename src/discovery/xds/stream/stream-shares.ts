/**
 * Limits the number of served streams, with fair shares for namespaces and, within them, for service accounts. A stream beyond the limit ends the
 * newest stream of the largest namespace.
 */
import { getHeapStatistics } from 'node:v8';
import { workloadIdentityOf } from '../../../identity/spiffe-id.ts';
import { FairQueue, type ShareKey } from '../../../model/collections/fair-queue.ts';
import { appendCode } from '../../../runtime/errors.ts';
import { groupOfPeer } from '../admission/ads-admission.ts';
import type { StreamRejection } from '../resource-source.ts';

export interface ServedStream {
  /** `host:port` */
  readonly peer: string;
  reject(reason: StreamRejection): void;
}

/** Upper estimate of a stream's heap size (docs/scaling.md, `replica.connectionKib`). */
const bytesOfStream = 32 * 1024;

export function maxServedStreamsForHeap(heapBytes = getHeapStatistics().heap_size_limit): number {
  return Math.max(1, Math.floor(heapBytes / 2 / bytesOfStream));
}

export class StreamShares {
  readonly #maxStreams: number;
  readonly #streams: FairQueue<ServedStream>;
  readonly #onDisplaced: () => void;

  /** @param onDisplaced called when a stream is ended for another one */
  constructor(maxStreams: number, onDisplaced: () => void) {
    this.#maxStreams = maxStreams;
    this.#streams = new FairQueue({ maxItems: maxStreams });
    this.#onDisplaced = onDisplaced;
  }

  /** `undefined` if a stream with these identities can be served. */
  rejectionOf({ peer }: Pick<ServedStream, 'peer'>, identities: readonly string[]): StreamRejection | undefined {
    const key = keyOf(peer, identities);
    return this.#streams.canAdd(key) ? undefined : this.#exhaustedRejection(key);
  }

  add(stream: ServedStream, identities: readonly string[]): void {
    const key = keyOf(stream.peer, identities);
    const rejection = this.#streams.add(stream, key);
    if (rejection === undefined) return;
    this.#onDisplaced();
    rejection.reject({
      code: 'RESOURCE_EXHAUSTED',
      reason: appendCode(
        `the limit of ${this.#maxStreams} xDS streams of this replica is reached, and the namespace of this stream has the most`,
        'STREAMS_EXHAUSTED',
      ),
    });
  }

  remove(stream: ServedStream): void {
    this.#streams.remove(stream);
  }

  #exhaustedRejection([namespace = '', account = '']: ShareKey): StreamRejection {
    const holderText = namespace === '' ? `address ${account} (clients without an identity)` : `namespace ${namespace}`;
    const count = this.#streams.sizeOf(namespace === '' ? [namespace, account] : [namespace]);
    const text = `${this.#streams.size} of at most ${this.#maxStreams} xDS streams are open at this replica, and ${holderText} has its fair share of ${count}`;
    const reason = appendCode(text, 'STREAMS_EXHAUSTED');
    return { code: 'RESOURCE_EXHAUSTED', reason };
  }
}

function keyOf(peer: string, identities: readonly string[]): ShareKey {
  const workload = identities.map(workloadIdentityOf).find((workloadIdentity) => workloadIdentity !== undefined);
  return workload === undefined ? ['', groupOfPeer(peer)] : [workload.namespace, workload.serviceAccount];
}
