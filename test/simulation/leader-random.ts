/**
 * Random faults of candidates for one duty: requests and responses lost or late, an unavailable API server, processes that are paused and resumed
 * late, killed, stopped and restarted, an unknown client that writes to the Lease, clock drift. Everything is derived from one seed. Two candidates
 * never lead at the same time; after the last fault, one leads.
 */
import { LeaderWorld, lease, type Replica, type ReplicaOptions } from './leader-world.ts';

export interface RandomElection {
  readonly violations: readonly string[];
  /** What was done, as text. */
  readonly steps: readonly string[];
  /** Number of terms. */
  readonly terms: number;
}

const faultsMs = 90_000;
/** Sum of a Lease, a check, a response, and a margin. */
const quietMs = 45_000;

/** Numbers from 0 to 1, the same for each seed (Mulberry32). */
function drawsOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** @param faultOptions deliberate bugs of each replica */
export async function randomElection(
  seed: number,
  faultOptions: Partial<ReplicaOptions> = {},
): Promise<RandomElection> {
  const draw = drawsOf(seed);
  const drawBetween = (min: number, max: number): number => min + draw() * (max - min);
  const world = new LeaderWorld();
  const log: string[] = [];
  let startedCount = 0;
  let stoppedReplica: Replica | undefined;
  const start = (): void => {
    const rate = drawBetween(0.85, 1.2);
    const suspends = draw() < 0.3;
    world.start(`replica-${++startedCount}`, { rate, suspends, recordsNothing: true, ...faultOptions });
  };
  const one = (): Replica => world.replicas[Math.floor(draw() * world.replicas.length)]!;
  const record = (text: string): void => void log.push(`${Math.round(world.clock.now())}: ${text}`);
  const steps: (() => void)[] = [
    () => {
      const share = drawBetween(0.2, 1);
      const of = draw() < 0.5 ? one().name : '';
      const lateMs = drawBetween(0, 6_000);
      record(`requests of ${of || 'all'} are lost or late, ${share.toFixed(1)} of them`);
      world.server.fate = (_, name) => {
        if ((of !== '' && name !== of) || draw() > share) return {};
        const kind = Math.floor(draw() * 4);
        if (kind === 0) return { lostMessage: 'request' };
        if (kind === 1) return { lostMessage: 'answer' };
        return kind === 2 ? { takenAfterMs: lateMs } : { respondsAfterMs: lateMs };
      };
    },
    () => {
      record('all is well with requests');
      world.server.fate = () => ({});
    },
    () => {
      world.server.isUp = !world.server.isUp;
      record(`the API server is ${world.server.isUp ? 'back' : 'away'}`);
    },
    () => {
      if (stoppedReplica !== undefined) return;
      const leader = world.replicas.find(({ isLeader }) => isLeader);
      stoppedReplica = draw() < 0.7 && leader !== undefined ? leader : one();
      record(`${stoppedReplica.name} is stopped`);
      stoppedReplica.process.stop();
    },
    () => {
      const first = draw() < 0.5 ? 'timer' : 'answer';
      if (stoppedReplica !== undefined) record(`${stoppedReplica.name} wakes`);
      stoppedReplica?.process.wake(first);
      stoppedReplica = undefined;
    },
    () => {
      const killed = one();
      if (killed === stoppedReplica) return;
      record(`${killed.name} is killed`);
      world.kill(killed);
      start();
    },
    () => {
      const resigningReplica = one();
      if (resigningReplica === stoppedReplica) return;
      record(`${resigningReplica.name} resigns`);
      resigningReplica.order('elections.resign');
      start();
    },
    () => {
      const spec = world.server.lease?.spec;
      if (spec === undefined) return;
      record('somebody writes into the Lease what is no word of its holder');
      world.server.put(lease, { spec });
    },
  ];
  start();
  start();
  while (world.clock.now() < faultsMs && world.violations.length === 0) {
    await world.passTime(drawBetween(10, 6_000));
    steps[Math.floor(draw() * steps.length)]!();
  }
  world.server.isUp = true;
  world.server.fate = () => ({});
  stoppedReplica?.process.wake('answer');
  if (world.violations.length === 0) await world.passTime(quietMs);
  const violations = [...world.violations];
  if (violations.length === 0 && world.leaders.length !== 1) violations.push('there is no leader at the end');
  const terms = new Set(
    world.server.acceptedRequests.map(({ object }) => (object.spec as { acquireTime?: string }).acquireTime),
  ).size;
  world.end();
  return { violations, steps: log, terms };
}
