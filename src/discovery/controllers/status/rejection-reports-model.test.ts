/**
 * Several replicas write the status of one object in random schedules: proxies reject and accept the object, it changes, replicas become leader and
 * exit, informers lag, and writes conflict. At the end, the status is correct and no replica writes.
 */

import { expect, it } from 'vitest';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { Draw } from '../../../../test/random-config/draw.ts';
import { isObject } from '../../../runtime/json-object.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { ObjectDistribution } from '../../distribution/distribution.ts';
import type { DueListener } from '../../distribution/due-objects.ts';
import type { ObjectFindings, ObjectProgress } from '../../distribution/object-findings.ts';
import { presenceLeaseOf } from '../../election/replica-presence.ts';
import { WriteGate } from '../../election/write-gate.ts';
import { ApiError } from '../../kubernetes/api-failure.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { ApiRequest, KubernetesObject } from '../../kubernetes/api-server.ts';
import { statusDutiesOf } from './distribution-status.ts';
import { parseReport, RejectionReports } from './rejection-reports.ts';
import type { StatusWriter } from './status-writer.ts';

const key = 'EnvoyFilter/shop/ring';
const clockReading = { monotonicMs: 0, wallMs: 0 };
const run = { retry: true, includesAll: false };

/** API server with one object. */
class Server {
  readonly #draw: Draw;
  object: KubernetesObject = { metadata: { name: 'ring', namespace: 'shop', generation: 1, resourceVersion: '1' } };
  writes = 0;
  conflicts = 0;
  onChanged: (object: KubernetesObject) => void = () => {};

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  readonly request = async ({ method, body }: ApiRequest): Promise<KubernetesObject> => {
    for (let remainingTurns = this.#draw.int(0, 5); remainingTurns > 0; remainingTurns--) await undefined;
    if (method === 'GET') return structuredClone(this.object);
    const { metadata, status } = body as KubernetesObject;
    if (metadata.resourceVersion !== this.object.metadata.resourceVersion) {
      this.conflicts++;
      throw new ApiError({ kind: 'status', code: 409, reason: 'Conflict', message: 'is another one', causes: [] });
    }
    this.writes++;
    this.put({ ...this.object, status });
    return this.object;
  };

  put(object: KubernetesObject): void {
    const resourceVersion = String(Number(this.object.metadata.resourceVersion) + 1);
    this.object = { ...object, metadata: { ...object.metadata, resourceVersion } };
    this.onChanged(this.object);
  }
}

class Replica {
  readonly identity: string;
  readonly reports: RejectionReports;
  readonly leaderWriter: StatusWriter;
  readonly follower: StatusWriter;
  readonly gate: WriteGate;
  /** Events that the replica's informer has not received yet. */
  readonly pendingEvents: KubernetesObject[] = [];
  lastObject: KubernetesObject;
  distribution: ObjectProgress;
  #onDue: DueListener = () => {};

  constructor(index: number, server: Server, leads: (replica: Replica) => boolean) {
    this.identity = `istiod_0000000${index}`;
    this.lastObject = server.object;
    this.distribution = { generation: 1, upToDate: 1, concerned: 1 };
    this.reports = new RejectionReports(this.identity);
    this.gate = new WriteGate({ server, now: () => clockReading, writeMs: 4_000 });
    this.gate.extend(clockReading, 10_000);
    const distribution = {
      findingsOf: (): ObjectFindings => ({ distribution: this.distribution }),
      onDue: (listener: DueListener) => {
        this.#onDue = listener;
      },
      unfinishedKeys: [key],
      ...{ compareAllStatuses: () => {}, repeatReport: () => this.markDue() },
    };
    [this.leaderWriter, this.follower] = statusDutiesOf({
      ...{
        distribution: distribution as unknown as ObjectDistribution,
        reports: this.reports,
        server,
        log: silentLogger,
      },
      ...{ informers: { servedResource: () => resourceOf('EnvoyFilter') }, presence: presenceLeaseOf(this.identity)! },
      isLeaderOf: () => leads(this),
    });
  }

  markDue(): void {
    this.#onDue([key], true);
  }

  /** The replica's proxies reject or accept the version that it received. */
  setRejected(isRejected: boolean): void {
    const rejection = { proxies: 1, resource: 'cluster a', reason: 'no' };
    const generation = this.lastObject.metadata.generation!;
    this.distribution = {
      ...{ generation, upToDate: isRejected ? 0 : 1, concerned: 1 },
      ...(isRejected && { rejection }),
    };
    this.markDue();
  }

  receive(isRejected: boolean): void {
    const object = this.pendingEvents.shift();
    if (object === undefined) return;
    const previous = this.lastObject;
    this.lastObject = object;
    this.reports.read('EnvoyFilter', [{ event: 'update', key: 'shop/ring', object, previous }]);
    if (object.metadata.generation !== previous.metadata.generation) this.setRejected(isRejected);
  }
}

/** @returns the outcome of the schedule, and the number of later writes */
async function play(seed: number) {
  const draw = new Draw(seed);
  const server = new Server(draw);
  let leader: Replica | undefined;
  const replicas = Array.from({ length: draw.int(2, 3) }, (_, index) => {
    return new Replica(index, server, (replica) => replica === leader);
  });
  const dead: string[] = [];
  server.onChanged = (object) => {
    for (const { pendingEvents } of replicas) pendingEvents.push(object);
  };
  const lead = (replica: Replica) => {
    leader = replica;
    return replica.leaderWriter.writeDue({ retry: true, includesAll: true }, replica.gate);
  };
  const write = (selectedReplicas: readonly Replica[]) =>
    Promise.all(
      selectedReplicas.flatMap(({ leaderWriter, follower, gate }, index) =>
        selectedReplicas[index] === leader
          ? [leaderWriter.writeDue(run, gate), follower.writeDue(run, gate)]
          : [follower.writeDue(run, gate)],
      ),
    );
  const bury = () => {
    for (const lease of dead) draw.pick(replicas).reports.onReplicaEnded(lease);
  };
  await lead(replicas[0]!);
  for (let step = 0; step < 40; step++) {
    await draw.one<unknown>(
      () => draw.pick(replicas).setRejected(draw.chance(0.5)),
      () => draw.pick(replicas).receive(draw.chance(0.5)),
      () => draw.pick(replicas).receive(draw.chance(0.5)),
      () => write(replicas.filter(() => draw.chance(0.7))),
      () => write(replicas),
      () => {
        if (!draw.chance(0.3)) return;
        const generation = server.object.metadata.generation! + 1;
        server.put({ ...server.object, metadata: { ...server.object.metadata, generation } });
      },
      async () => {
        if (draw.chance(0.3)) await lead(draw.pick(replicas));
      },
      async () => {
        if (replicas.length === 1 || !draw.chance(0.2)) return;
        const [exitedReplica] = replicas.splice(draw.int(0, replicas.length - 1), 1);
        dead.push(presenceLeaseOf(exitedReplica!.identity)!);
        if (exitedReplica === leader) await lead(draw.pick(replicas));
      },
      bury,
    );
  }
  const writesBefore = server.writes;
  let isQuiet = false;
  for (let round = 0; round < 30 && !isQuiet; round++) {
    const previousRequests = server.writes + server.conflicts;
    for (const replica of replicas) while (replica.pendingEvents.length > 0) replica.receive(draw.chance(0.5));
    bury();
    await write(replicas);
    isQuiet =
      server.writes + server.conflicts === previousRequests &&
      replicas.every(({ pendingEvents }) => pendingEvents.length === 0);
  }
  const rejectingReplicas = replicas.filter(({ distribution: { rejection } }) => rejection !== undefined);
  return { server, rejecting: rejectingReplicas, isQuiet, writes: server.writes - writesBefore };
}

function reconciledIn({ status }: KubernetesObject): unknown {
  const list = isObject(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return list.find((one) => isObject(one) && one.type === 'Reconciled');
}

const schedules = sized({ quick: 100, short: 400, full: 4_000 });

it('the status eventually contains rejections by proxies of each running replica, and replicas then stop writing', async () => {
  let [rejectedCount, recoveredCount, conflicts] = [0, 0, 0];
  for (let seed = 1; seed <= schedules; seed++) {
    const { server, rejecting, isQuiet, writes } = await play(seed);
    const { object } = server;
    const report = parseReport(isObject(object.status) ? object.status.conditions : undefined);
    const outcome = { seed, isQuiet, rejects: report !== undefined, reconciled: reconciledIn(object) };
    const isRejected = rejecting.length > 0;
    expect(outcome).toMatchObject({
      ...{ isQuiet: true, rejects: isRejected },
      reconciled: {
        ...{ status: isRejected ? 'False' : 'True', reason: isRejected ? 'Rejected' : 'UpToDate' },
        observedGeneration: object.metadata.generation,
      },
    });
    if (report !== undefined) {
      expect(
        rejecting.map(({ identity }) => identity),
        `${seed}`,
      ).toContain(report.identity);
      expect(report.generation).toBe(object.metadata.generation);
    }
    expect(writes, `of schedule ${seed}`).toBeLessThanOrEqual(8);
    if (isRejected) rejectedCount++;
    else recoveredCount++;
    conflicts += server.conflicts;
  }
  // Each case occurred often enough.
  expect(Math.min(rejectedCount, recoveredCount, conflicts)).toBeGreaterThan(schedules / 10);
});
