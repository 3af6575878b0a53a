/**
 * A source of configuration over xDS for the explorer: the real chart `xds-source`, with a disk, and a server that has one kind with two objects. The
 * choices of the explorer: a stream is opened (`open`) or not (`refuse`), a response is sent (`respond`), the stream ends (`close`), the server is
 * killed and started with empty caches (`down`, `up`), which are filled within a minute (`fill`, `fill:a`); the owner changes an object (`update:a`),
 * makes it invalid (`spoil:a`), or deletes it (`delete:a`); the control plane is killed and started (`kill`, `start`), and restores the saved state
 * (`restore`); and the next deadline (`tick:xds-source-1.pauseLimit`).
 *
 * Bounds: numbers of faults and of changes by the owner. A server with partly filled caches has sent the empty state on the same stream before,
 * because a first response that lacks less than half of the objects is indistinguishable from a deletion. The state on disk is that of the last
 * response; it may actually be a second older, which is not modelled.
 */
import type { AnyActorRef } from 'xstate';
import { type RestoredState, xdsSourceMachine } from '../../machines/discovery/config/xds-source.machine.ts';
import type { XdsProtocol, XdsSourceOrder } from '../../machines/discovery/config/xds-source-protocol.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

const names = ['a', 'b'] as const;
type Name = (typeof names)[number];
const kind = 'ServiceEntry';
const faultKinds = new Set(['refuse', 'close', 'down', 'kill']);
const changeKinds = new Set(['update', 'spoil', 'delete']);
/** Maximum time to fill the caches of a started server. */
const fillMs = 60_000;
/** Maximum time until a server has sent its contents. */
const pushMs = 1_000;

const emptyText = textOf({});

interface Version {
  readonly number: number;
  readonly isValid: boolean;
}
type Objects<Value> = Readonly<Partial<Record<Name, Value>>>;

export interface SourceBounds {
  readonly changes: number;
  readonly faults: number;
}

interface State extends SourceBounds {
  /** The objects as written by the owner. */
  readonly writtenVersions: Objects<Version>;
  /** The newest valid version of each object that exists. */
  readonly expected: Objects<number>;
  /** Whether the server runs, and the contents of its caches. */
  readonly isUp: boolean;
  readonly cachedNames: readonly Name[];
  /** The stream's effect; undefined without a stream. */
  readonly stream: AnyActorRef | undefined;
  readonly isOpen: boolean;
  /** What the server sent last on this stream, as text. */
  readonly sentText: string | undefined;
  /** A response that the chart decides on. */
  readonly response: { readonly objects: Objects<Version>; readonly removedNames: readonly Name[] } | undefined;
  readonly pausedNames: readonly Name[];
  /** The control plane. */
  readonly restoreCall: AnyActorRef | undefined;
  readonly isRunning: boolean;
  readonly isReadable: boolean;
  readonly appliedVersions: Objects<number>;
  readonly savedVersions: Objects<number>;
  /** Names of objects served to proxies. */
  readonly servedNames: readonly Name[];
  readonly violations: readonly InvariantViolation[];
}

export interface SourceParts {
  readonly chart: typeof xdsSourceMachine;
  /** A deliberate bug of the effect: invalid versions apply. */
  readonly appliesInvalid?: boolean;
}

export class XdsSourceExploration implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #system = new SymbolicSystem();
  readonly #parts: SourceParts;
  #root: AnyActorRef | undefined;
  #state: State;

  constructor(bounds: SourceBounds, parts: Partial<SourceParts> = {}) {
    this.#parts = { chart: xdsSourceMachine, ...parts };
    const first = { number: 1, isValid: true };
    this.#state = {
      ...bounds,
      ...{ writtenVersions: { a: first, b: first }, expected: { a: 1, b: 1 }, isUp: true, cachedNames: names },
      ...{ stream: undefined, isOpen: false, sentText: undefined, response: undefined, pausedNames: [] },
      ...{
        restoreCall: undefined,
        isRunning: false,
        isReadable: false,
        appliedVersions: {},
        savedVersions: {},
        servedNames: [],
        violations: [],
      },
    };
    this.#startControlPlane();
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  /** Whether the newest valid state applies; for an object that is invalid now, any version that was sent before. */
  get isGoalReached(): boolean {
    const { isReadable, appliedVersions, writtenVersions, servedNames } = this.#state;
    const isNewest = (name: Name): boolean => {
      const newest = writtenVersions[name];
      if (newest?.isValid === false) return appliedVersions[name] !== undefined || !servedNames.includes(name);
      return appliedVersions[name] === newest?.number;
    };
    return isReadable && names.every(isNewest);
  }

  choices(): readonly WorldChoice[] {
    const { changes, faults, writtenVersions, isUp, cachedNames, stream, isOpen, restoreCall, isRunning, violations } =
      this.#state;
    if (violations.length > 0) return [];
    const isMissing = (name: Name): boolean => writtenVersions[name] !== undefined && !cachedNames.includes(name);
    const all: [name: string, isPossible: boolean][] = [
      ['restore', restoreCall !== undefined],
      ['open', stream !== undefined && !isOpen && isUp && (cachedNames.length === 0 || !names.some(isMissing))],
      ['unreachable', stream !== undefined && !isOpen && !isUp],
      ['refuse', stream !== undefined && !isOpen && isUp],
      ['respond', isOpen && this.#state.sentText !== this.#cachedText()],
      ['close', isOpen],
      ['down', isUp],
      ['up', !isUp],
      ['fill', isUp && names.some(isMissing)],
      ...names.map((name): [string, boolean] => [
        `fill:${name}`,
        this.#state.sentText === emptyText && isMissing(name),
      ]),
      ['kill', isRunning],
      ['start', !isRunning],
      ...names.flatMap((name): [string, boolean][] => [
        [`update:${name}`, isUp && writtenVersions[name] !== undefined],
        [`spoil:${name}`, isUp && writtenVersions[name]?.isValid === true],
        [`delete:${name}`, isUp && writtenVersions[name] !== undefined],
      ]),
      ...this.#system.zone.firableTimers().map((timer): [string, boolean] => [`tick:${timer}`, true]),
    ];
    return all.flatMap(([name, isPossible]) => {
      const kind = name.split(':')[0]!;
      const remainingBudget = faultKinds.has(kind) ? faults : changeKinds.has(kind) ? changes : 1;
      const free = !faultKinds.has(kind) && !changeKinds.has(kind);
      return isPossible && remainingBudget > 0 ? [{ name, free }] : [];
    });
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    const name = subject as Name;
    const { faults, changes } = this.#state;
    if (faultKinds.has(kind)) this.#set({ faults: faults - 1 });
    if (changeKinds.has(kind)) this.#set({ changes: changes - 1 });
    switch (kind) {
      case 'restore':
        this.#restore();
        break;
      case 'open':
        this.#set({ isOpen: true });
        this.#report({ type: 'source-stream.opened' });
        break;
      case 'refuse':
      case 'unreachable':
      case 'close':
        this.#endStream();
        break;
      case 'respond':
        this.#respond();
        break;
      case 'down':
        this.#set({ isUp: false, cachedNames: [] });
        this.#system.disarm('fill');
        if (this.#state.isOpen) this.#endStream();
        break;
      case 'up':
        this.#set({ isUp: true });
        if (Object.keys(this.#state.writtenVersions).length > 0) this.#system.arm('fill', fillMs, 'within');
        break;
      case 'fill':
        this.#fillCaches(subject === '' ? names : [name]);
        break;
      case 'kill':
        this.#kill();
        break;
      case 'start':
        this.#startControlPlane();
        break;
      case 'update':
      case 'spoil':
        this.#write(name, kind === 'update');
        break;
      case 'delete':
        this.#deleteObject(name);
        break;
      default:
        this.#system.fire(subject);
    }
    this.#awaitPush();
    this.#system.elapse();
    this.#checkInvariants();
  }

  key(): string {
    const { stream, restoreCall, ...state } = this.#state;
    let key = JSON.stringify([state, stream !== undefined, restoreCall !== undefined]) + this.#system.zone.orderKey();
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
      if (value !== undefined) key += `${actor.id} ${JSON.stringify([value, context])}\n`;
    }
    return key;
  }

  save(): () => void {
    const [state, root] = [this.#state, this.#root];
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      this.#root = root;
      restore();
    };
  }

  // ---- violations

  #checkInvariants(): void {
    const { isReadable, appliedVersions, expected, writtenVersions, servedNames } = this.#state;
    for (const name of names) {
      if (
        isReadable &&
        servedNames.includes(name) &&
        writtenVersions[name] !== undefined &&
        appliedVersions[name] === undefined
      )
        this.#recordViolation('nothing is deleted that its owner did not delete', name);
      const number = appliedVersions[name];
      if (number !== undefined && expected[name] !== undefined && number > expected[name])
        this.#recordViolation('an invalid version never applies', `${name} ${number}`);
    }
    if (isReadable)
      this.#set({
        servedNames: names.filter((name) => appliedVersions[name] !== undefined || servedNames.includes(name)),
      });
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  // ---- the owner and the server

  #write(name: Name, isValid: boolean): void {
    const { writtenVersions, expected } = this.#state;
    const number = writtenVersions[name]!.number + 1;
    this.#set({
      writtenVersions: { ...writtenVersions, [name]: { number, isValid } },
      ...(isValid && { expected: { ...expected, [name]: number } }),
    });
  }

  #deleteObject(name: Name): void {
    const { [name]: _, ...written } = this.#state.writtenVersions;
    const { [name]: __, ...expected } = this.#state.expected;
    this.#set({ writtenVersions: written, expected });
    this.#fillCaches([]);
  }

  /** A server sends its contents within a second. */
  #awaitPush(): void {
    const isDue = this.#state.isOpen && this.#state.sentText !== this.#cachedText();
    if (!isDue) this.#system.disarm('push');
    else if (!this.#system.zone.has('push')) this.#system.arm('push', pushMs, 'within');
  }

  #fillCaches(filled: readonly Name[]): void {
    const { writtenVersions, cachedNames } = this.#state;
    const all = names.filter(
      (name) => writtenVersions[name] !== undefined && (cachedNames.includes(name) || filled.includes(name)),
    );
    this.#set({ cachedNames: all });
    if (names.every((name) => writtenVersions[name] === undefined || all.includes(name))) this.#system.disarm('fill');
  }

  #cachedText(): string {
    return textOf(this.#cachedObjects());
  }

  #cachedObjects(): Objects<Version> {
    const { writtenVersions, cachedNames } = this.#state;
    return Object.fromEntries(
      names.filter((name) => cachedNames.includes(name)).map((name) => [name, writtenVersions[name]]),
    );
  }

  #respond(): void {
    const { appliedVersions } = this.#state;
    const objects = this.#cachedObjects();
    const knownNames = names.filter((name) => appliedVersions[name] !== undefined);
    const removed = knownNames.filter((name) => objects[name] === undefined);
    const rejected = names.filter((name) => objects[name]?.isValid === false).length;
    this.#set({ sentText: this.#cachedText(), response: { objects, removedNames: removed } });
    const counts = { known: knownNames.length, removed: removed.length, rejected };
    this.#report({ type: 'source-response.received', kind, nonce: 'n', ...counts });
  }

  #endStream(): void {
    const endEvent = { type: 'source-stream.ended', code: 'UNAVAILABLE', reason: 'gone', retryAfterMs: 0, chance: 0 };
    const { stream } = this.#state;
    this.#set({ isOpen: false, sentText: undefined, response: undefined, pausedNames: [] });
    if (stream !== undefined) reportEvent(stream, endEvent);
  }

  #report(event: { type: string; [field: string]: unknown }): void {
    reportEvent(this.#state.stream!, event);
  }

  // ---- the control plane

  #startControlPlane(): void {
    this.#set({ isRunning: true });
    this.#root = this.#system.start(this.#chart(), {
      id: 'xds-source-1',
      input: { address: 'xds://config', kinds: [kind], protocol: 'sotw', optionalMs: null, pauseMs: 300_000 },
    });
  }

  #kill(): void {
    this.#system.kill(this.#root!);
    this.#system.forgetKilled(this.#system.zone.names('mark').filter((mark) => mark.startsWith('xds-source-1.')));
    this.#set({
      ...{ isRunning: false, isReadable: false, appliedVersions: {}, restoreCall: undefined, stream: undefined },
      ...{ isOpen: false, sentText: undefined, response: undefined, pausedNames: [] },
    });
  }

  #restore(): void {
    const { restoreCall, savedVersions } = this.#state;
    this.#set({ restoreCall: undefined, appliedVersions: savedVersions });
    settleCall(restoreCall!, { value: { objects: Object.keys(savedVersions).length } satisfies RestoredState });
  }

  #chart() {
    return this.#parts.chart.provide({
      actors: {
        restoreState: scriptedPromise<RestoredState, undefined>(({ self }) => this.#set({ restoreCall: self })),
        stream: scriptedCallback<XdsSourceOrder, { protocol: XdsProtocol }>({
          start: ({ self }) => this.#set({ stream: self, isOpen: false, sentText: undefined, pausedNames: [] }),
          receive: (_, order) => this.#execute(order),
          stop: ({ self }) => {
            if (this.#state.stream === self) this.#set({ stream: undefined, isOpen: false, sentText: undefined });
          },
        }),
      },
      actions: { allowReading: () => this.#set({ isReadable: true }) },
    });
  }

  #execute(order: XdsSourceOrder): void {
    if (order.type === 'source-deletions.apply') {
      this.#change({}, this.#state.pausedNames);
      this.#set({ pausedNames: [] });
    }
    if (order.type !== 'source-response.apply') return;
    const { objects, removedNames } = this.#state.response!;
    const valid = names.filter((name) =>
      this.#parts.appliesInvalid === true ? objects[name] : objects[name]?.isValid,
    );
    const changes = Object.fromEntries(valid.map((name) => [name, objects[name]!.number]));
    this.#change(changes, order.deletions === 'apply' ? removedNames : []);
    this.#set({ response: undefined, pausedNames: order.deletions === 'apply' ? [] : removedNames });
  }

  #change(changes: Objects<number>, removedNames: readonly Name[]): void {
    const next = { ...this.#state.appliedVersions, ...changes };
    const applied = Object.fromEntries(
      names.flatMap((name) => (next[name] === undefined || removedNames.includes(name) ? [] : [[name, next[name]]])),
    );
    this.#set({ appliedVersions: applied, savedVersions: applied });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}

function textOf(objects: Objects<unknown>): string {
  return JSON.stringify(names.map((name) => objects[name] ?? null));
}
