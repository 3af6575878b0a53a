/**
 * A rotation of the root beside workloads that receive roots late, renew late, exit and restart, and a control plane that is killed in
 * any step: every workload trusts the certificate that every other workload presents at that time.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AnyActorRef, createActor, fromCallback, fromPromise, SimulatedClock, setup } from 'xstate';
import {
  type AuthorityReading,
  authorityMachine,
  type Candidate,
  type Journal,
} from '../../machines/discovery/ca/authority.machine.ts';
import type {
  LeafCertificatesAwait,
  OperatorOrder,
  RootsAwait,
} from '../../machines/discovery/ca/authority-protocol.ts';
import { type LedgerLine, WorkloadLedger } from '../../src/discovery/ca/ledger/workload-ledger.ts';

const leafMs = 24 * 3_600_000;
const workloadCount = 3;

interface SimulatedWorkload {
  readonly node: string;
  leaf: { signer: string; endsAt: number } | undefined;
  trustedRoots: readonly string[];
  /** Number of certificates signed for the workload so far. */
  certificateCount: number;
}

/** A deliberate error of the property. */
type RotationMutant =
  | 'signs at once'
  | 'drops at once'
  | 'forgets the ledger'
  | 'treats acknowledgements as those of other workloads'
  | 'counts what is signed'
  | undefined;

class World {
  readonly workloads = Array.from(
    { length: workloadCount },
    (_, i): SimulatedWorkload => ({ node: `node-${i}`, leaf: undefined, trustedRoots: [], certificateCount: 0 }),
  );
  readonly clock = new SimulatedClock();
  readonly stages: string[] = [];
  /** The journal on disk. */
  journal: Journal | undefined;
  readonly lines: LedgerLine[] = [];
  #count = 0;
  /** Roots that the control plane distributes; undefined while it is down. */
  inForce: { roots: readonly string[]; signer: string } | undefined;
  /** The root whose certificates must be renewed. */
  taintedRoot: string | null = null;
  /** Whether the control plane has continued its start, so that workloads reach it. */
  isServing = false;
  #diskIsFull = false;
  #ledger!: WorkloadLedger;
  #checkAge = (): void => {};
  #root: AnyActorRef | undefined;
  readonly #mutant: RotationMutant;

  constructor(mutant?: RotationMutant) {
    this.#mutant = mutant;
  }

  async startAuthority(): Promise<void> {
    if (this.#root !== undefined) return;
    this.#ledger = new WorkloadLedger({ maxLeafMs: leafMs });
    if (this.#mutant !== 'forgets the ledger') for (const line of this.lines) this.#ledger.apply(line);
    let roots: readonly string[] = [];
    const authority = authorityMachine.provide({
      actors: {
        workloadLedger: fromCallback<RootsAwait | LeafCertificatesAwait, undefined>(({ receive, sendBack }) => {
          let awaitedOrder: RootsAwait | LeafCertificatesAwait | undefined;
          let since = 0;
          this.#checkAge = () => {
            if (awaitedOrder === undefined) return;
            const order = awaitedOrder;
            const now = this.now;
            if (order.type === 'roots.await') {
              const missingCount = this.#ledger.missingTrust(order.roots, since, now).count;
              const isEarly = this.#mutant === (order.roots.length > 1 ? 'signs at once' : 'drops at once');
              if (missingCount > 0 && !isEarly) return;
              awaitedOrder = undefined;
              sendBack({ type: 'roots.trusted', roots: order.roots });
            } else {
              if (this.#ledger.missingRenewal([order.authority], now).count > 0 && this.#mutant !== 'drops at once')
                return;
              awaitedOrder = undefined;
              sendBack({ type: 'leaf-certificates.unused', authority: order.authority });
            }
          };
          receive((order) => {
            awaitedOrder = order;
            since = this.now;
            queueMicrotask(() => this.#checkAge());
          });
        }),
        watchAuthority: fromCallback<{ type: never }, undefined>(() => {}),
        loadAuthority: fromPromise<AuthorityReading, undefined>(async () =>
          this.journal === undefined ? { outcome: 'absent' } : { outcome: 'resumed', journal: this.journal },
        ),
        prepareRoot: fromPromise<{ id: string }, undefined>(async () => ({ id: `root-${++this.#count}` })),
        readCandidate: fromPromise<Candidate, { signer: string }>(async () => ({ outcome: 'same' })),
        isRootDue: fromPromise<boolean, { signer: string }>(async () => false),
        writeJournal: fromPromise<void, Journal>(async ({ input }) => {
          if (this.#diskIsFull) throw new Error('the disk is full');
          this.journal = input;
          this.stages.push(input.stage);
        }),
      },
      actions: {
        publishRoots: (_, params) => {
          roots = params.roots;
          this.taintedRoot = params.tainted;
          if (this.inForce !== undefined) this.inForce = { ...this.inForce, roots };
        },
        signWith: (_, { signer }) => {
          this.inForce = { roots, signer };
        },
      },
    });
    const parent = setup({ actors: { authority } }).createMachine({
      invoke: { id: 'authority', src: 'authority', input: { checkMs: 3_600_000, settleMs: 100 } },
      on: {
        'authority.loaded': { actions: () => (this.isServing = true) },
        '*': {},
      },
    });
    this.#root = createActor(parent, { clock: this.clock }).start();
    this.#authority?.send({ type: 'authority.load' });
    await this.settle();
  }

  get now(): number {
    return this.clock.now();
  }

  get state(): unknown {
    return this.#authority?.getSnapshot().value;
  }

  get #authority(): AnyActorRef | undefined {
    return this.#root?.getSnapshot().children.authority;
  }

  async settle(): Promise<void> {
    for (let tick = 0; tick < 30; tick++) await Promise.resolve();
  }

  kill(): void {
    this.#root?.stop();
    this.#root = undefined;
    this.inForce = undefined;
    this.isServing = false;
    this.#checkAge = () => {};
  }

  fillDisk(isFull: boolean): void {
    this.#diskIsFull = isFull;
  }

  async sendOrder(type: OperatorOrder['type']): Promise<void> {
    this.#authority?.send({ type });
    await this.settle();
  }

  /** Gives the workload a certificate and the roots, unless they are lost (`arrives`). It reports the arrival if `says`. */
  async renewCertificate(i: number, { arrives = true, says: reports = true } = {}): Promise<void> {
    const workload = this.workloads[i]!;
    if (this.inForce === undefined) return;
    const { signer, roots } = this.inForce;
    const [serialNumber, endsAt] = [String(++workload.certificateCount), this.now + leafMs];
    const name = this.#nameOf(workload);
    if (arrives) workload.leaf = { signer, endsAt };
    if (arrives) workload.trustedRoots = roots;
    this.#recordLine({ issued: { ...name, authority: signer, serialNumber, endsAt } });
    if ((arrives && reports) || this.#mutant === 'counts what is signed')
      this.#recordLine({ arrived: { ...name, serialNumber } });
    await this.settle();
  }

  /** Pushes the roots to the workload, which reports them once its Envoy has accepted them. */
  async updateTrust(i: number, reports = true): Promise<void> {
    const workload = this.workloads[i]!;
    if (this.inForce === undefined || workload.leaf === undefined) return;
    workload.trustedRoots = this.inForce.roots;
    const reporters =
      this.#mutant === 'treats acknowledgements as those of other workloads' ? this.workloads : [workload];
    if (reports)
      for (const one of reporters)
        this.#recordLine({ trusted: { ...this.#nameOf(one), roots: workload.trustedRoots } });
    await this.settle();
  }

  async passTime(ms: number): Promise<void> {
    this.clock.increment(ms);
    for (const workload of this.workloads) if ((workload.leaf?.endsAt ?? 0) <= this.now) workload.leaf = undefined;
    this.#checkAge();
    await this.settle();
  }

  /** Finds a workload that does not trust the certificate of another one, or of the control plane, which has one of its current signer. */
  brokenTrust(): string | undefined {
    const livingWorkloads = this.workloads.filter(({ leaf }) => leaf !== undefined);
    const presentedLeaves = livingWorkloads.map(({ node, leaf }) => ({ node, signer: leaf!.signer }));
    if (this.inForce !== undefined) presentedLeaves.push({ node: 'the control plane', signer: this.inForce.signer });
    for (const { node, trustedRoots } of livingWorkloads) {
      const refusedLeaf = presentedLeaves.find(({ signer }) => !trustedRoots.includes(signer));
      if (refusedLeaf !== undefined)
        return `${node} trusts ${trustedRoots} and refuses ${refusedLeaf.node}, signed by ${refusedLeaf.signer}`;
    }
    return undefined;
  }

  #recordLine(line: LedgerLine): void {
    this.lines.push(line);
    this.#ledger.apply(line);
    this.#checkAge();
  }

  #nameOf({ node }: SimulatedWorkload) {
    return { identity: 'spiffe://td/ns/a/sa/b', node };
  }
}

type Step = readonly [name: string, run: (world: World) => Promise<void> | void];

const workload = fc.nat(workloadCount - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: workload.map((i): Step => [`renew ${i}`, (world) => world.renewCertificate(i)]) },
  {
    weight: 2,
    arbitrary: workload.map(
      (i): Step => [`renew ${i}, and lose it`, (world) => world.renewCertificate(i, { arrives: false })],
    ),
  },
  {
    weight: 1,
    arbitrary: workload.map(
      (i): Step => [`renew ${i} silently`, (world) => world.renewCertificate(i, { says: false })],
    ),
  },
  { weight: 4, arbitrary: workload.map((i): Step => [`trust ${i}`, (world) => world.updateTrust(i)]) },
  { weight: 1, arbitrary: workload.map((i): Step => [`trust ${i} silently`, (world) => world.updateTrust(i, false)]) },
  { weight: 2, arbitrary: fc.constant<Step>(['order', (world) => world.sendOrder('rotation.start')]) },
  { weight: 1, arbitrary: fc.constant<Step>(['revert', (world) => world.sendOrder('rotation.revert')]) },
  { weight: 1, arbitrary: fc.constant<Step>(['taint', (world) => world.sendOrder('rotation.taint')]) },
  { weight: 1, arbitrary: fc.constant<Step>(['kill', (world) => world.kill()]) },
  { weight: 2, arbitrary: fc.constant<Step>(['start', (world) => world.startAuthority()]) },
  {
    weight: 1,
    arbitrary: fc.boolean().map((isDiskFull): Step => [`disk ${isDiskFull}`, (world) => world.fillDisk(isDiskFull)]),
  },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(1_000, 40_000, 3_600_000, 13 * 3_600_000)
      .map((ms): Step => [`wait ${ms}`, (world) => world.passTime(ms)]),
  },
);

async function run(steps: readonly Step[], mutant?: RotationMutant): Promise<World> {
  const world = new World(mutant);
  await world.startAuthority();
  for (let i = 0; i < workloadCount; i++) await world.renewCertificate(i);
  for (const [name, act] of steps) {
    await act(world);
    expect(world.brokenTrust(), `after ${name} in ${JSON.stringify(world.state)}`).toBeUndefined();
  }
  return world;
}

const steps = fc.array(step, { maxLength: 60 });

describe('a root rotation', () => {
  it('disconnects no workload for any order of events, and completes if all participants respond', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const world = await run(all);
        world.fillDisk(false);
        await world.startAuthority();
        await world.passTime(60_000);
        for (let round = 0; round < 6; round++) {
          for (let i = 0; i < workloadCount; i++) {
            await world.updateTrust(i);
            await world.renewCertificate(i);
            await world.updateTrust(i);
          }
          await world.passTime(40_000);
          expect(world.brokenTrust()).toBeUndefined();
        }
        expect(world.journal).toMatchObject({ stage: 'steady', other: null });
        expect(world.inForce?.roots).toEqual([world.inForce?.signer]);
      }),
      { numRuns: 400 },
    );
  });

  it.each<Exclude<RotationMutant, undefined>>([
    'signs at once',
    'drops at once',
    'forgets the ledger',
    'treats acknowledgements as those of other workloads',
  ])('disconnects a workload if the implementation %s', async (mutant) => {
    const { failed } = await fc.check(
      fc.asyncProperty(steps, async (all) => void (await run(all, mutant))),
      { numRuns: 3_000, seed: 1 },
    );
    expect(failed).toBe(true);
  });

  it.each(['steady', 'trusting', 'signing', 'dropping'] as const)(
    'lets a control plane that was killed in stage %s start before its workloads connect, although the rotation waits for them',
    async (stage) => {
      const world = new World();
      world.journal = { stage, signer: 'root-1', other: stage === 'steady' ? null : 'root-2', tainted: null };
      for (const { node } of world.workloads) {
        const workload = { identity: `spiffe://cluster.local/ns/a/sa/${node}`, node };
        world.lines.push({ issued: { ...workload, authority: 'root-2', serialNumber: '1', endsAt: leafMs } });
      }
      await world.startAuthority();
      expect(JSON.stringify(world.state)).toContain(stage);
      expect(world.isServing).toBe(true);
    },
  );

  it('reports a tainted root for renewal when another root signs, even after a restart, and never returns to it', async () => {
    const world = await run([]);
    await world.sendOrder('rotation.taint');
    expect(world.journal).toEqual({ stage: 'trusting', signer: 'root-1', other: 'root-2', tainted: 'root-1' });
    expect(world.taintedRoot).toBeNull();
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    expect(world.stages.at(-1)).toBe('signing');
    expect(world.taintedRoot).toBe('root-1');
    world.kill();
    world.taintedRoot = null;
    await world.startAuthority();
    expect(world.taintedRoot).toBe('root-1');
    await world.sendOrder('rotation.revert');
    expect(world.inForce?.signer).toBe('root-2');
    for (let i = 0; i < workloadCount; i++) await world.renewCertificate(i);
    expect(world.stages.at(-1)).toBe('dropping');
    await world.sendOrder('rotation.revert');
    expect(world.stages.at(-1)).toBe('dropping');
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    expect(world.journal).toEqual({ stage: 'steady', signer: 'root-2', other: null, tainted: null });
    expect(world.taintedRoot).toBeNull();
  });

  it.each(['trusting', 'signing'])('accepts a taint in stage %s', async (stage) => {
    const world = await run([]);
    await world.sendOrder('rotation.start');
    if (stage === 'signing') for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    await world.sendOrder('rotation.taint');
    expect(world.journal).toMatchObject({ stage, tainted: 'root-1' });
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    expect(world.taintedRoot).toBe('root-1');
  });

  it('drops a taint if the rotation is reverted before another root signs', async () => {
    const world = await run([]);
    await world.sendOrder('rotation.taint');
    await world.sendOrder('rotation.revert');
    expect(world.journal).toEqual({ stage: 'steady', signer: 'root-1', other: null, tainted: null });
    await world.sendOrder('rotation.start');
    expect(world.journal).toMatchObject({ stage: 'trusting', tainted: null });
  });

  it('skips workloads that it waits for, one stage at a time, if an operator forces it', async () => {
    const world = await run([]);
    await world.sendOrder('rotation.proceed');
    expect(world.stages).toEqual(['steady']);
    await world.sendOrder('rotation.start');
    for (const stage of ['signing', 'dropping', 'steady']) {
      await world.sendOrder('rotation.proceed');
      expect(world.stages.at(-1)).toBe(stage);
    }
    expect(world.brokenTrust()).toContain('trusts root-1 and refuses');
    expect(world.inForce).toEqual({ signer: 'root-2', roots: ['root-2'] });
  });

  it.each([
    {
      what: 'waits for a workload that did not receive its new certificate, until the previous one expires',
      mutant: undefined,
    },
    { what: 'disconnects such a workload if the ledger counts signed certificates', mutant: 'counts what is signed' },
  ] as const)('$what', async ({ mutant }) => {
    const world = new World(mutant);
    await world.startAuthority();
    for (let i = 0; i < workloadCount; i++) await world.renewCertificate(i);
    await world.passTime(13 * 3_600_000);
    await world.sendOrder('rotation.start');
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    for (let i = 1; i < workloadCount; i++) await world.renewCertificate(i);
    await world.renewCertificate(0, { arrives: false });
    await world.renewCertificate(0, { arrives: false });
    expect(world.stages.at(-1)).toBe(mutant === undefined ? 'signing' : 'dropping');
    await world.updateTrust(1);
    if (mutant !== undefined) {
      expect(world.brokenTrust()).toContain('refuses node-0, signed by root-1');
      return;
    }
    await world.passTime(11 * 3_600_000);
    expect(world.stages.at(-1)).toBe('dropping');
    expect(world.brokenTrust()).toBeUndefined();
  });

  it('passes through its stages in order, and reports the last one', async () => {
    const world = await run([]);
    await world.sendOrder('rotation.start');
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    for (let i = 0; i < workloadCount; i++) await world.renewCertificate(i);
    for (let i = 0; i < workloadCount; i++) await world.updateTrust(i);
    expect(world.stages).toEqual(['steady', 'trusting', 'signing', 'dropping', 'steady']);
    expect(world.inForce).toEqual({ signer: 'root-2', roots: ['root-2'] });
  });
});
