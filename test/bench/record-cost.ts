/** What one record costs, and what looking at messages costs that are not recorded: in this process, without a network. */
import { type Actor, fromCallback } from 'xstate';
import { adsConnectionMachine } from '../../machines/discovery/ads-connection.machine.ts';
import { routineMessages, type StreamOrder, type StreamReport } from '../../machines/discovery/ads-protocol.ts';
import { streamLimits } from '../../src/discovery/ads/ads-limits.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder, type Recorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceLine, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { TraceRing } from '../../src/runtime/trace/trace-ring.ts';
import { typeUrls } from '../ads-client.ts';
import { medianOf } from './statistics.ts';

const rounds = 31;
const ringCapacity = 20_000;

/**
 * The CPU time of one record: redacted, and kept in the ring as both programs do it.
 *
 * @param lines records of the kind that is asked about, recorded again and again
 * @returns microseconds
 */
export function recordCostUs(lines: readonly TraceLine[]): number {
  const records = lines.filter((line): line is TraceRecord => line.kind !== 'header');
  const recorder = createRecorder({ program: 'bench', sinks: [new TraceRing(ringCapacity)] });
  const repetitions = Math.ceil(ringCapacity / records.length);
  const costs = Array.from({ length: rounds }, () =>
    cpuUs(() => {
      for (let i = 0; i < repetitions; i++) for (const { seq: _, t: __, ...body } of records) recorder.record(body);
    }),
  );
  return medianOf(costs) / (repetitions * records.length);
}

/**
 * What a recorder costs a push to many connections when it leaves out its messages.
 *
 * @returns milliseconds of CPU for one push of one type that every client acknowledges
 */
export function omittedCostMs(connections: number): number {
  const recorder = createRecorder({ program: 'bench', sinks: [new TraceRing(ringCapacity)], omits: routineMessages });
  const recorded = new ManyConnections(connections, recorder);
  const plain = new ManyConnections(connections, undefined);
  const differences = Array.from({ length: rounds }, () => cpuUs(() => recorded.push()) - cpuUs(() => plain.push()));
  recorded.stop();
  plain.stop();
  return Math.max(0, medianOf(differences)) / 1_000;
}

/** The charts of connections, with streams that send nothing anywhere and clients that acknowledge all. */
class ManyConnections {
  readonly #actors: Actor<typeof adsConnectionMachine>[];
  readonly #toAcknowledge: (() => void)[] = [];
  #nonce = 0;

  constructor(count: number, recorder: Recorder | undefined) {
    const machine = adsConnectionMachine.provide({ actors: { stream: this.#stream() } });
    this.#actors = Array.from({ length: count }, (_, i) =>
      startRoot(machine, {
        id: `ads-connection-${i + 1}`,
        input: {
          connection: i + 1,
          onlyType: null,
          resendsEndpoints: true,
          hearsLateNames: true,
          ...streamLimits({ ackTimeoutMs: 60_000 }),
        },
        ...(recorder !== undefined && { recorder }),
        onError: (error) => {
          throw error;
        },
      }),
    );
    for (const actor of this.#actors) {
      actor.send({ type: 'peer.authenticated', identities: [] });
      actor.send({ type: 'node.accepted', node: 'bench' });
      actor.send(request(''));
    }
    this.#acknowledge();
  }

  push(): void {
    for (const actor of this.#actors) actor.send({ type: 'push.order', version: 'v', types: [typeUrls.CDS] });
    this.#acknowledge();
  }

  stop(): void {
    for (const actor of this.#actors) actor.stop();
  }

  #acknowledge(): void {
    for (const acknowledge of this.#toAcknowledge.splice(0)) acknowledge();
  }

  #stream() {
    return fromCallback<StreamOrder, { connection: number }>(({ sendBack, receive }) => {
      const report = (event: StreamReport): void => sendBack(event);
      receive((order) => {
        if (order.type !== 'responses.send') return;
        for (const { typeUrl } of order.orders) {
          const nonce = String(++this.#nonce);
          report({ type: 'response.sent', typeUrl, nonce, version: nonce, resources: 1, removed: 0, sentAt: 1 });
          this.#toAcknowledge.push(() => report(request(nonce)));
        }
      });
    });
  }
}

function request(nonce: string): StreamReport {
  return {
    type: 'request.received',
    request: { protocol: 'sotw', typeUrl: typeUrls.CDS, nonce, names: [], rejection: null },
  };
}

function cpuUs(deed: () => void): number {
  const before = process.cpuUsage();
  deed();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
