/**
 * Trust bundles that the mesh configuration lists by address, for the explorer: the real charts `trust-bundles` and `trust-bundle`, with the
 * program's record of active bundles, scripted effects, and publishers that have only versions. The choices of the explorer: a publisher's next root
 * (`publish:0`), the mesh configuration (`name:0`, `unname:0`; `domains:0`: its roots apply to other trust domains), a read of it (`look`), the
 * content of the disk (`recall:0`, `lost:0`; `full`: it stores nothing any more), a response of an endpoint (`answer:0`, `fail:0`, `throw:0`;
 * `stale:0` is the previous response), a kill and a start of the control plane (`kill`, `start`), and the next deadline (`tick:trust-bundle-1.rest`).
 *
 * Bounds: numbers of endpoints, changes and faults; a read of the mesh configuration never fails and takes at most 1 s.
 */
import { type AnyActorRef, setup, spawnChild, stopChild } from 'xstate';
import {
  type BundleResponse,
  type TrustBundleInput,
  trustBundleMachine,
} from '../../machines/discovery/bundles/trust-bundle.machine.ts';
import { trustBundlesMachine } from '../../machines/discovery/bundles/trust-bundles.machine.ts';
import { scriptedPromise, settleCall } from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';
import { HeldBundles } from '../../src/discovery/bundles/held-bundles.ts';

export interface BundlesBounds {
  readonly endpoints: number;
  readonly changes: number;
  readonly faults: number;
  /** Refresh hint of publishers (default: none). */
  readonly hintMs?: number;
}

interface Bundle {
  readonly version: string;
}

export interface BundlesParts {
  readonly bundles: typeof trustBundlesMachine;
  readonly bundle: typeof trustBundleMachine;
  /** Effect of a response without a bundle: no change. */
  readonly handleFailure: (held: HeldBundles<Bundle>, endpoint: string) => HeldBundles<Bundle>;
}

const defaultParts: BundlesParts = {
  bundles: trustBundlesMachine,
  bundle: trustBundleMachine,
  handleFailure: (held) => held,
};

interface PendingCall {
  readonly actor: AnyActorRef;
  readonly kind: 'recall' | 'fetch';
}

interface Endpoint {
  readonly isNamed: boolean;
  /** Number of changes of its trust domains, including its removals and additions. */
  readonly revision: number;
  /** The revision of its queries: an endpoint that is added again is queried immediately. */
  readonly requestedRevision: number;
  /** Number of roots of its publisher so far: the sequence number of its bundle. */
  readonly publishedVersion: number;
  /** Stored version; 0 if none. */
  readonly storedVersion: number;
  readonly isLost: boolean;
  /** Latest active version since the endpoint was listed, or since the start. */
  readonly latestVersion: number;
  /** Version reported to agents. */
  readonly notifiedVersion: number;
  /** Failed queries in a row. */
  readonly failures: number;
  readonly call: PendingCall | undefined;
}

interface State {
  readonly changes: number;
  readonly faults: number;
  readonly isUp: boolean;
  readonly isFull: boolean;
  readonly heldBundles: HeldBundles<Bundle>;
  readonly pendingListing: { readonly actor: AnyActorRef; readonly found: TrustBundleInput[] } | undefined;
  readonly endpoints: readonly Endpoint[];
  readonly violations: readonly InvariantViolation[];
}

/** Values from docs/identity.md, not from the chart. */
const [minRefreshMs, defaultRefreshMs, maxRefreshMs, firstPauseMs] = [30_000, 300_000, 3_600_000, 5_000];
const faults = new Set(['kill', 'full', 'lost', 'fail', 'throw', 'stale']);
const changes = new Set(['publish', 'name', 'unname', 'domains']);
/** Maximum duration of a listing. Other events may occur before it returns. */
const maxListingMs = 1_000;
const nameOf = (index: number): string => `https://${index}/`;
/** Number of failures after which delays do not grow. */
const maxFailures = 7;
const withBounds = (name: string, value: unknown): unknown =>
  name === 'failures' ? Math.min(value as number, maxFailures) : value;
const indexOf = (endpoint: string): number => Number(/\d+/.exec(endpoint)![0]);

export class BundlesWorld implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #bounds: BundlesBounds;
  readonly #parts: BundlesParts;
  readonly #system = new SymbolicSystem();
  readonly #control: AnyActorRef;
  #state: State;

  constructor(bounds: BundlesBounds, parts: Partial<BundlesParts> = {}) {
    this.#bounds = bounds;
    this.#parts = { ...defaultParts, ...parts };
    const endpoint: Endpoint = {
      ...{
        isNamed: true,
        revision: 0,
        requestedRevision: -1,
        publishedVersion: 1,
        storedVersion: 0,
        isLost: false,
        latestVersion: 0,
        notifiedVersion: 0,
        failures: 0,
      },
      call: undefined,
    };
    this.#state = {
      ...{ changes: bounds.changes, faults: bounds.faults, isUp: false, isFull: false, heldBundles: new HeldBundles() },
      ...{ pendingListing: undefined, violations: [] },
      endpoints: Array.from({ length: bounds.endpoints }, () => endpoint),
    };
    this.#control = this.#system.start(this.#controlPlane(), { id: 'discovery', input: undefined });
    this.apply('start');
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  /** Whether the bundle of each listed publisher is active and reported, and unlisted ones are removed. */
  get isGoalReached(): boolean {
    const { isUp, heldBundles, endpoints } = this.#state;
    const isDone = ({ isNamed, publishedVersion, notifiedVersion }: Endpoint, index: number): boolean =>
      isNamed
        ? notifiedVersion === publishedVersion &&
          heldBundles.activeBundle(nameOf(index))?.version === `${publishedVersion}`
        : !heldBundles.isFollowed(nameOf(index));
    return isUp && endpoints.every(isDone);
  }

  choices(): readonly WorldChoice[] {
    const { isUp, isFull, pendingListing, heldBundles, endpoints, violations } = this.#state;
    if (violations.length > 0) return [];
    const names: [name: string, isPossible: boolean][] = [
      ['kill', isUp],
      ['start', !isUp],
      ['full', !isFull],
      ['look', pendingListing !== undefined],
      ...endpoints.flatMap(({ isNamed, publishedVersion, storedVersion, call }, index): [string, boolean][] => [
        [`publish:${index}`, true],
        [`name:${index}`, !isNamed],
        [`unname:${index}`, isNamed],
        [`domains:${index}`, isNamed],
        [`recall:${index}`, call?.kind === 'recall'],
        [
          `lost:${index}`,
          call?.kind === 'recall' && storedVersion > 0 && heldBundles.activeBundle(nameOf(index)) === undefined,
        ],
        [`answer:${index}`, call?.kind === 'fetch'],
        [`stale:${index}`, call?.kind === 'fetch' && publishedVersion > 1],
        [`fail:${index}`, call?.kind === 'fetch'],
        [`throw:${index}`, call?.kind === 'fetch'],
      ]),
      ...this.#system.zone.firableTimers().map((timer): [string, boolean] => [`tick:${timer}`, true]),
    ];
    return names.flatMap(([name, isPossible]) => {
      const kind = name.split(':')[0]!;
      const isLimited = faults.has(kind) || changes.has(kind);
      const isBudgetLeft = (faults.has(kind) ? this.#state.faults : this.#state.changes) > 0;
      return isPossible && (isBudgetLeft || !isLimited) ? [{ name, free: !isLimited }] : [];
    });
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    const index = Number(subject);
    if (faults.has(kind)) this.#set({ faults: this.#state.faults - 1 });
    if (changes.has(kind)) this.#set({ changes: this.#state.changes - 1 });
    switch (kind) {
      case 'start':
        this.#set({ isUp: true });
        this.#control.send({ type: 'up' });
        this.#bundles()?.send({ type: 'bundles.load' });
        break;
      case 'kill':
        this.#kill();
        break;
      case 'full':
        this.#set({ isFull: true });
        break;
      case 'look': {
        const { actor, found } = this.#state.pendingListing!;
        this.#set({ pendingListing: undefined });
        this.#system.disarm('look');
        settleCall(actor, { value: found });
        break;
      }
      case 'publish':
        this.#changeEndpoint(index, { publishedVersion: this.#state.endpoints[index]!.publishedVersion + 1 });
        break;
      case 'name':
      case 'unname':
      case 'domains':
        this.#configure(index, kind !== 'unname');
        break;
      case 'recall':
        this.#respondToRecall(index);
        break;
      case 'lost':
        this.#changeEndpoint(index, { isLost: true });
        this.#settleCall(index, { outcome: 'failed', reason: 'unreadable' });
        break;
      case 'answer':
      case 'stale':
        this.#respond(index, this.#state.endpoints[index]!.publishedVersion - (kind === 'stale' ? 1 : 0));
        break;
      case 'fail':
      case 'throw':
        this.#fail(index, kind);
        break;
      default:
        this.#system.fire(subject);
    }
    this.#system.elapse();
    this.#checkInvariants();
  }

  key(): string {
    const { endpoints, heldBundles, pendingListing, ...state } = this.#state;
    const endpointKeys = endpoints.map(({ call, ...rest }, index) => [
      rest,
      call?.kind,
      this.#heldOf(heldBundles, index),
    ]);
    let key = JSON.stringify([state, endpointKeys, pendingListing?.found]) + this.#system.zone.orderKey();
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
      if (value !== undefined) key += `${actor.id} ${JSON.stringify([value, context], withBounds)}\n`;
    }
    return key;
  }

  save(): () => void {
    const state = this.#state;
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      restore();
    };
  }

  // ---- violations

  #checkInvariants(): void {
    const { endpoints, heldBundles } = this.#state;
    for (const [index, { latestVersion }] of endpoints.entries()) {
      const inForce = Number(heldBundles.activeBundle(nameOf(index))?.version ?? 0);
      if (!heldBundles.isFollowed(nameOf(index))) this.#changeEndpoint(index, { latestVersion: 0 });
      else if (latestVersion > 0 && inForce === 0)
        this.#recordViolation(
          'the active roots stay until other roots are fetched',
          `${index} has none after ${latestVersion}`,
        );
      else if (inForce < latestVersion)
        this.#recordViolation(
          'no older version replaces a newer one',
          `${index} has ${inForce} after ${latestVersion}`,
        );
      else if (inForce > latestVersion) this.#changeEndpoint(index, { latestVersion: inForce });
    }
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  #judgeQuestion(index: number): void {
    const { storedVersion, isLost } = this.#state.endpoints[index]!;
    const { heldBundles } = this.#state;
    const pause = `pause:${index}`;
    if (this.#system.zone.has(pause) && !this.#system.zone.isOverdue(pause)) {
      const earlyMs = -this.#system.zone.minElapsedMs(pause);
      this.#recordViolation(
        'no endpoint is requested before its time',
        `${index} is requested ${earlyMs} ms too early`,
      );
    }
    this.#system.disarm(pause);
    if (storedVersion > 0 && !isLost && heldBundles.activeBundle(nameOf(index)) === undefined)
      this.#recordViolation('a restart keeps stored roots', `${index} had ${storedVersion}`);
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  // ---- the mesh configuration, the disk, the publishers

  #configure(index: number, isNamed: boolean): void {
    this.#changeEndpoint(index, { isNamed, revision: this.#state.endpoints[index]!.revision + 1 });
    this.#bundles()?.send({ type: 'mesh.changed', resource: 'fs://config' });
    // A change of the mesh configuration itself notifies agents.
    if (!isNamed) this.#changeEndpoint(index, { notifiedVersion: 0 });
  }

  #kill(): void {
    this.#control.send({ type: 'down' });
    this.#set({ isUp: false, heldBundles: new HeldBundles() });
    for (const index of this.#state.endpoints.keys()) {
      this.#system.disarm(`pause:${index}`);
      this.#changeEndpoint(index, {
        isLost: false,
        requestedRevision: -1,
        latestVersion: 0,
        notifiedVersion: 0,
        failures: 0,
        call: undefined,
      });
    }
  }

  #respondToRecall(index: number): void {
    const inForce = Number(this.#state.heldBundles.activeBundle(nameOf(index))?.version ?? 0);
    const storedVersion = inForce || this.#state.endpoints[index]!.storedVersion;
    if (storedVersion === 0) this.#settleCall(index, { outcome: 'failed', reason: 'no bundle is stored' });
    else this.#settleCall(index, this.#offerVersion(index, storedVersion));
  }

  #respond(index: number, number: number): void {
    this.#settleCall(index, this.#offerVersion(index, number));
    const isNothing = this.#state.heldBundles.activeBundle(nameOf(index)) === undefined;
    this.#schedulePause(index, isNothing ? this.#state.endpoints[index]!.failures + 1 : 0);
  }

  #fail(index: number, kind: 'fail' | 'throw'): void {
    this.#set({ heldBundles: this.#parts.handleFailure(this.#state.heldBundles, nameOf(index)) });
    if (kind === 'fail') this.#settleCall(index, { outcome: 'failed', reason: 'away' });
    else settleCall(this.#takeCall(index), { error: new Error('a bug') });
    this.#schedulePause(index, this.#state.endpoints[index]!.failures + 1);
  }

  /** Sets the time before which the endpoint must not be queried. */
  #schedulePause(index: number, failures: number): void {
    this.#changeEndpoint(index, { failures });
    const hasBundle = this.#state.heldBundles.activeBundle(nameOf(index)) !== undefined;
    const interval = Math.min(Math.max(this.#bounds.hintMs ?? defaultRefreshMs, minRefreshMs), maxRefreshMs);
    const ms = hasBundle ? interval : Math.min(firstPauseMs * 2 ** (failures - 1), defaultRefreshMs);
    this.#system.arm(`pause:${index}`, ms, 'mark');
  }

  #offerVersion(index: number, number: number): BundleResponse {
    this.#set({ heldBundles: this.#state.heldBundles.withOffered(nameOf(index), { version: `${number}` }) });
    return { outcome: 'fetched', version: `${number}`, sequence: number, refreshMs: this.#bounds.hintMs ?? null };
  }

  #settleCall(index: number, value: BundleResponse): void {
    settleCall(this.#takeCall(index), { value });
  }

  #takeCall(index: number): AnyActorRef {
    const { actor } = this.#state.endpoints[index]!.call!;
    this.#changeEndpoint(index, { call: undefined });
    return actor;
  }

  // ---- the control plane

  #controlPlane() {
    const callOf = (kind: PendingCall['kind']) =>
      scriptedPromise<BundleResponse, TrustBundleInput>(
        ({ self, input }) => {
          const index = indexOf(input.endpoint);
          // The effect does not query an endpoint that is no longer listed.
          if (kind === 'fetch' && !this.#state.heldBundles.isFollowed(input.endpoint))
            return settleCall(self, {
              value: { outcome: 'failed', reason: 'the mesh configuration no longer has this endpoint' },
            });
          if (kind === 'fetch') this.#judgeQuestion(index);
          if (kind === 'recall') this.#startRevision(index, Number.parseInt(input.trustDomains[0]!, 10));
          this.#changeEndpoint(index, { call: { actor: self, kind } });
        },
        ({ self, input }) => {
          const index = indexOf(input.endpoint);
          if (this.#state.endpoints[index]!.call?.actor === self) this.#changeEndpoint(index, { call: undefined });
        },
      );
    const scripted = this.#parts.bundles.provide({
      actors: {
        findEndpoints: scriptedPromise<TrustBundleInput[], undefined>(
          ({ self }) => this.#findPendingCall(self),
          ({ self }) => {
            if (this.#state.pendingListing?.actor !== self) return;
            this.#set({ pendingListing: undefined });
            this.#system.disarm('look');
          },
        ),
        trustBundle: this.#parts.bundle.provide({
          actors: { recallBundle: callOf('recall'), fetchBundle: callOf('fetch') },
          actions: {
            applyBundle: ({ context }, { version }) => this.#applyVersion(indexOf(context.endpoint), version),
          },
        }),
      },
      actions: {
        publishRoots: () => {
          for (const [index, { isNamed }] of this.#state.endpoints.entries())
            if (isNamed)
              this.#changeEndpoint(index, {
                notifiedVersion: Number(this.#state.heldBundles.activeBundle(nameOf(index))?.version ?? 0),
              });
        },
      },
    });
    return setup({ actors: { bundles: scripted } }).createMachine({
      id: 'discovery',
      on: {
        up: { actions: spawnChild('bundles', { id: 'trust-bundles' }) },
        down: { actions: stopChild('trust-bundles') },
        '*': {},
      },
    });
  }

  #bundles(): AnyActorRef | undefined {
    return (this.#control.getSnapshot() as { children: Record<string, AnyActorRef> }).children['trust-bundles'];
  }

  #startRevision(index: number, revision: number): void {
    if (this.#state.endpoints[index]!.requestedRevision === revision) return;
    this.#changeEndpoint(index, { requestedRevision: revision, failures: 0 });
    this.#system.disarm(`pause:${index}`);
  }

  #findPendingCall(actor: AnyActorRef): void {
    const found = this.#state.endpoints.flatMap(({ isNamed, revision }, index) =>
      isNamed ? [{ endpoint: nameOf(index), trustDomains: [`${revision}.test`] }] : [],
    );
    this.#system.disarm('look');
    this.#system.arm('look', maxListingMs, 'within');
    this.#set({
      pendingListing: { actor, found },
      heldBundles: this.#state.heldBundles.withEndpoints(found.map(({ endpoint }) => endpoint)),
    });
    for (const [index, { isNamed }] of this.#state.endpoints.entries())
      if (!isNamed) this.#changeEndpoint(index, { storedVersion: 0 });
  }

  #applyVersion(index: number, version: string): void {
    const { heldBundles, isFull } = this.#state;
    if (heldBundles.candidateBundle(nameOf(index))?.version === version && !isFull)
      this.#changeEndpoint(index, { storedVersion: Number(version) });
    this.#set({ heldBundles: heldBundles.withAdopted(nameOf(index), version) });
  }

  #heldOf(held: HeldBundles<Bundle>, index: number): unknown {
    const name = nameOf(index);
    return [held.isFollowed(name), held.candidateBundle(name)?.version, held.activeBundle(name)?.version];
  }

  // ---- the state

  #changeEndpoint(index: number, change: Partial<Endpoint>): void {
    const { endpoints } = this.#state;
    this.#set({ endpoints: endpoints.with(index, { ...endpoints[index]!, ...change }) });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}
