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
  readonly failed: (held: HeldBundles<Bundle>, endpoint: string) => HeldBundles<Bundle>;
}

const defaultParts: BundlesParts = { bundles: trustBundlesMachine, bundle: trustBundleMachine, failed: (held) => held };

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
  readonly published: number;
  /** Stored version; 0 if none. */
  readonly kept: number;
  readonly isLost: boolean;
  /** Latest active version since the endpoint was listed, or since the start. */
  readonly latest: number;
  /** Version reported to agents. */
  readonly notified: number;
  /** Failed queries in a row. */
  readonly failures: number;
  readonly call: PendingCall | undefined;
}

interface State {
  readonly changes: number;
  readonly faults: number;
  readonly isUp: boolean;
  readonly isFull: boolean;
  readonly held: HeldBundles<Bundle>;
  readonly pendingListing: { readonly actor: AnyActorRef; readonly found: TrustBundleInput[] } | undefined;
  readonly endpoints: readonly Endpoint[];
  readonly violations: readonly InvariantViolation[];
}

/** Values from docs/identity.md, not from the chart. */
const [minRefreshMs, defaultRefreshMs, maxRefreshMs, firstPauseMs] = [30_000, 300_000, 3_600_000, 5_000];
const faults = new Set(['kill', 'full', 'lost', 'fail', 'throw', 'stale']);
const changes = new Set(['publish', 'name', 'unname', 'domains']);
/** No event waits for a read. */
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
        published: 1,
        kept: 0,
        isLost: false,
        latest: 0,
        notified: 0,
        failures: 0,
      },
      call: undefined,
    };
    this.#state = {
      ...{ changes: bounds.changes, faults: bounds.faults, isUp: false, isFull: false, held: new HeldBundles() },
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
    const { isUp, held, endpoints } = this.#state;
    const isDone = ({ isNamed, published, notified }: Endpoint, index: number): boolean =>
      isNamed
        ? notified === published && held.activeBundle(nameOf(index))?.version === `${published}`
        : !held.isFollowed(nameOf(index));
    return isUp && endpoints.every(isDone);
  }

  choices(): readonly WorldChoice[] {
    const { isUp, isFull, pendingListing, held, endpoints, violations } = this.#state;
    if (violations.length > 0) return [];
    const names: [name: string, isPossible: boolean][] = [
      ['kill', isUp],
      ['start', !isUp],
      ['full', !isFull],
      ['look', pendingListing !== undefined],
      ...endpoints.flatMap(({ isNamed, published, kept, call }, index): [string, boolean][] => [
        [`publish:${index}`, true],
        [`name:${index}`, !isNamed],
        [`unname:${index}`, isNamed],
        [`domains:${index}`, isNamed],
        [`recall:${index}`, call?.kind === 'recall'],
        [`lost:${index}`, call?.kind === 'recall' && kept > 0 && held.activeBundle(nameOf(index)) === undefined],
        [`answer:${index}`, call?.kind === 'fetch'],
        [`stale:${index}`, call?.kind === 'fetch' && published > 1],
        [`fail:${index}`, call?.kind === 'fetch'],
        [`throw:${index}`, call?.kind === 'fetch'],
      ]),
      ...this.#system.zone.firable().map((timer): [string, boolean] => [`tick:${timer}`, true]),
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
        this.#change(index, { published: this.#state.endpoints[index]!.published + 1 });
        break;
      case 'name':
      case 'unname':
      case 'domains':
        this.#configure(index, kind !== 'unname');
        break;
      case 'recall':
        this.#recall(index);
        break;
      case 'lost':
        this.#change(index, { isLost: true });
        this.#settleCall(index, { outcome: 'failed', reason: 'unreadable' });
        break;
      case 'answer':
      case 'stale':
        this.#respond(index, this.#state.endpoints[index]!.published - (kind === 'stale' ? 1 : 0));
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
    const { endpoints, held, pendingListing, ...state } = this.#state;
    const endpointKeys = endpoints.map(({ call, ...rest }, index) => [rest, call?.kind, this.#heldOf(held, index)]);
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
    const { endpoints, held } = this.#state;
    for (const [index, { latest }] of endpoints.entries()) {
      const inForce = Number(held.activeBundle(nameOf(index))?.version ?? 0);
      if (!held.isFollowed(nameOf(index))) this.#change(index, { latest: 0 });
      else if (latest > 0 && inForce === 0)
        this.#violate('the active roots stay until other roots are fetched', `${index} has none after ${latest}`);
      else if (inForce < latest)
        this.#violate('no older version replaces a newer one', `${index} has ${inForce} after ${latest}`);
      else if (inForce > latest) this.#change(index, { latest: inForce });
    }
    for (const failure of this.#system.failures) this.#violate('no chart fails', failure);
  }

  #judgeQuestion(index: number): void {
    const { kept, isLost } = this.#state.endpoints[index]!;
    const { held } = this.#state;
    const pause = `pause:${index}`;
    if (this.#system.zone.has(pause) && !this.#system.zone.hasPassed(pause)) {
      const earlyMs = -this.#system.zone.sinceMs(pause);
      this.#violate('no endpoint is requested before its time', `${index} is requested ${earlyMs} ms too early`);
    }
    this.#system.disarm(pause);
    if (kept > 0 && !isLost && held.activeBundle(nameOf(index)) === undefined)
      this.#violate('a restart keeps stored roots', `${index} had ${kept}`);
  }

  #violate(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  // ---- the mesh configuration, the disk, the publishers

  #configure(index: number, isNamed: boolean): void {
    this.#change(index, { isNamed, revision: this.#state.endpoints[index]!.revision + 1 });
    this.#bundles()?.send({ type: 'mesh.changed', resource: 'fs://config' });
    // A change of the mesh configuration itself notifies agents.
    if (!isNamed) this.#change(index, { notified: 0 });
  }

  #kill(): void {
    this.#control.send({ type: 'down' });
    this.#set({ isUp: false, held: new HeldBundles() });
    for (const index of this.#state.endpoints.keys()) {
      this.#system.disarm(`pause:${index}`);
      this.#change(index, {
        isLost: false,
        requestedRevision: -1,
        latest: 0,
        notified: 0,
        failures: 0,
        call: undefined,
      });
    }
  }

  #recall(index: number): void {
    const inForce = Number(this.#state.held.activeBundle(nameOf(index))?.version ?? 0);
    const storedVersion = inForce || this.#state.endpoints[index]!.kept;
    if (storedVersion === 0) this.#settleCall(index, { outcome: 'failed', reason: 'no bundle is stored' });
    else this.#settleCall(index, this.#offer(index, storedVersion));
  }

  #respond(index: number, number: number): void {
    this.#settleCall(index, this.#offer(index, number));
    const isNothing = this.#state.held.activeBundle(nameOf(index)) === undefined;
    this.#schedulePause(index, isNothing ? this.#state.endpoints[index]!.failures + 1 : 0);
  }

  #fail(index: number, kind: 'fail' | 'throw'): void {
    this.#set({ held: this.#parts.failed(this.#state.held, nameOf(index)) });
    if (kind === 'fail') this.#settleCall(index, { outcome: 'failed', reason: 'away' });
    else settleCall(this.#takeCall(index), { error: new Error('a bug') });
    this.#schedulePause(index, this.#state.endpoints[index]!.failures + 1);
  }

  /** Sets the time before which the endpoint must not be queried. */
  #schedulePause(index: number, failures: number): void {
    this.#change(index, { failures });
    const hasBundle = this.#state.held.activeBundle(nameOf(index)) !== undefined;
    const interval = Math.min(Math.max(this.#bounds.hintMs ?? defaultRefreshMs, minRefreshMs), maxRefreshMs);
    const ms = hasBundle ? interval : Math.min(firstPauseMs * 2 ** (failures - 1), defaultRefreshMs);
    this.#system.arm(`pause:${index}`, ms, 'mark');
  }

  #offer(index: number, number: number): BundleResponse {
    this.#set({ held: this.#state.held.withOffered(nameOf(index), { version: `${number}` }) });
    return { outcome: 'fetched', version: `${number}`, sequence: number, refreshMs: this.#bounds.hintMs ?? null };
  }

  #settleCall(index: number, value: BundleResponse): void {
    settleCall(this.#takeCall(index), { value });
  }

  #takeCall(index: number): AnyActorRef {
    const { actor } = this.#state.endpoints[index]!.call!;
    this.#change(index, { call: undefined });
    return actor;
  }

  // ---- the control plane

  #controlPlane() {
    const callOf = (kind: PendingCall['kind']) =>
      scriptedPromise<BundleResponse, TrustBundleInput>(
        ({ self, input }) => {
          const index = indexOf(input.endpoint);
          // The effect does not query an endpoint that is no longer listed.
          if (kind === 'fetch' && !this.#state.held.isFollowed(input.endpoint))
            return settleCall(self, {
              value: { outcome: 'failed', reason: 'the mesh configuration no longer has this endpoint' },
            });
          if (kind === 'fetch') this.#judgeQuestion(index);
          if (kind === 'recall') this.#startRevision(index, Number.parseInt(input.trustDomains[0]!, 10));
          this.#change(index, { call: { actor: self, kind } });
        },
        ({ self, input }) => {
          const index = indexOf(input.endpoint);
          if (this.#state.endpoints[index]!.call?.actor === self) this.#change(index, { call: undefined });
        },
      );
    const scripted = this.#parts.bundles.provide({
      actors: {
        findEndpoints: scriptedPromise<TrustBundleInput[], undefined>(
          ({ self }) => this.#find(self),
          ({ self }) => {
            if (this.#state.pendingListing?.actor !== self) return;
            this.#set({ pendingListing: undefined });
            this.#system.disarm('look');
          },
        ),
        trustBundle: this.#parts.bundle.provide({
          actors: { recallBundle: callOf('recall'), fetchBundle: callOf('fetch') },
          actions: { applyBundle: ({ context }, { version }) => this.#adopt(indexOf(context.endpoint), version) },
        }),
      },
      actions: {
        publishRoots: () => {
          for (const [index, { isNamed }] of this.#state.endpoints.entries())
            if (isNamed)
              this.#change(index, { notified: Number(this.#state.held.activeBundle(nameOf(index))?.version ?? 0) });
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
    this.#change(index, { requestedRevision: revision, failures: 0 });
    this.#system.disarm(`pause:${index}`);
  }

  #find(actor: AnyActorRef): void {
    const found = this.#state.endpoints.flatMap(({ isNamed, revision }, index) =>
      isNamed ? [{ endpoint: nameOf(index), trustDomains: [`${revision}.test`] }] : [],
    );
    this.#system.disarm('look');
    this.#system.arm('look', maxListingMs, 'within');
    this.#set({
      pendingListing: { actor, found },
      held: this.#state.held.withEndpoints(found.map(({ endpoint }) => endpoint)),
    });
    for (const [index, { isNamed }] of this.#state.endpoints.entries()) if (!isNamed) this.#change(index, { kept: 0 });
  }

  #adopt(index: number, version: string): void {
    const { held, isFull } = this.#state;
    if (held.candidateBundle(nameOf(index))?.version === version && !isFull)
      this.#change(index, { kept: Number(version) });
    this.#set({ held: held.withAdopted(nameOf(index), version) });
  }

  #heldOf(held: HeldBundles<Bundle>, index: number): unknown {
    const name = nameOf(index);
    return [held.isFollowed(name), held.candidateBundle(name)?.version, held.activeBundle(name)?.version];
  }

  // ---- the state

  #change(index: number, change: Partial<Endpoint>): void {
    const { endpoints } = this.#state;
    this.#set({ endpoints: endpoints.with(index, { ...endpoints[index]!, ...change }) });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}
