/** The charts of a workload's secrets in virtual time: an authority that may be unreachable, and an Envoy that may be slow, hang or disconnect. */
import { type AnyActorRef, sendTo, setup } from 'xstate';
import { identityName, rootsName } from '../../machines/agent/secrets/held-secrets.ts';
import { type ObtainOrder, type ObtainResult, secretMachine } from '../../machines/agent/secrets/secret.machine.ts';
import { type SecretsInput, secretsMachine } from '../../machines/agent/secrets/secrets.machine.ts';
import type {
  CertificateServed,
  OutputWrite,
  SdsOrder,
  TrustBundleServed,
} from '../../machines/agent/secrets-protocol.ts';
import { defaultSettings } from '../../machines/agent/settings.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { VirtualClock } from './virtual-clock.ts';

export const hourMs = 3_600_000;
const trustLimitMs = 10_000;

export interface SecretMachines {
  secrets: typeof secretsMachine;
  secret: typeof secretMachine;
}

/** The response of an authority to one request. */
export type AuthorityResponse = 'signs' | 'away' | 'not known' | 'busy' | 'silent';

export interface RequestAttempt {
  readonly atMs: number;
  readonly shownCredential: string;
}

/** Returns random values that are the same in each run. */
export function drawsOf(seed: number): () => number {
  let state = seed * 2_654_435_761 + 1;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

const defaultMachines: SecretMachines = { secrets: secretsMachine, secret: secretMachine };

export class SecretsWorld {
  readonly clock: VirtualClock;
  readonly records: TraceRecord[] = [];
  readonly attempts: RequestAttempt[] = [];
  /** Secrets that Envoy is served, by name. */
  readonly servedSecrets = new Map<string, string>();
  readonly bundlesServed: string[] = [];
  /** Serial numbers of served certificates, which here are versions. */
  readonly certificatesServed: string[] = [];
  /** Additional roots in bundles (default: none). */
  readonly bundles = new Map<string, readonly string[]>();
  readonly violations: string[] = [];
  respondTo: (shown: string) => AuthorityResponse;
  pushbackMs = 0;
  lifeMs = 24 * hourMs;
  /** The root of the signer. */
  root = 'root-1';
  /** Whether ROOTCA is assembled immediately. */
  composesBundles = true;
  /** Why files of OUTPUT_CERTS cannot be written; undefined if they can. */
  outputError: string | undefined;
  readonly outputWrites: { readonly atMs: number; readonly certificate: string }[] = [];
  authorityResponds: 'at once' | 'never' = 'at once';
  subscribesRoots = false;
  readonly agent: AnyActorRef;
  #server: AnyActorRef | undefined;
  #secrets: AnyActorRef | undefined;
  #pendingRequest: { call: AnyActorRef; value: ObtainResult } | undefined;
  #rootOf = new Map<string, string>();
  #endOf = new Map<string, number>();
  readonly #stepWatchers = new Set<AnyActorRef>();
  #wallOffsetMs = 0;
  #takenRoots = '';
  #rootsServedAt = 0;
  #signedCount = 0;
  readonly #draw: () => number;

  constructor(
    options: {
      machines?: Partial<SecretMachines>;
      clock?: VirtualClock;
      seed?: number;
      /** The authority's response since the first request. */
      word?: AuthorityResponse;
      records?: boolean;
      /** Whether the agent replaces an older one. */
      obtainsFirst?: boolean;
      /** Whether OUTPUT_CERTS is set. */
      writesOutput?: boolean;
      /** Why files of OUTPUT_CERTS cannot be written, from the start. */
      outputError?: string;
    } = {},
  ) {
    this.clock = options.clock ?? new VirtualClock();
    const { word = 'signs' } = options;
    this.respondTo = () => word;
    this.outputError = options.outputError;
    this.#draw = drawsOf(options.seed ?? 1);
    const machines = { ...defaultMachines, ...options.machines };
    const settings: SecretsInput = {
      ...defaultSettings.identity,
      obtainsFirst: options.obtainsFirst === true,
      writesOutput: options.writesOutput === true,
      source: 'authority',
      reason: 'a token',
      socket: 's',
    };
    const recorder = createRecorder({ program: 'test', now: () => this.clock.now() });
    if (options.records !== false) recorder.observe((record) => this.records.push(record));
    const secrets = this.#withEffects(machines);
    const proxy = scriptedCallback<TrustBundleServed | CertificateServed, undefined>({
      start: () => {},
      receive: (_, event) => {
        if (event.type === 'certificate.served') this.certificatesServed.push(event.serialNumber);
        else this.bundlesServed.push(event.hash);
      },
    });
    const logic = setup({
      types: {} as { events: { type: 'secrets.ready' } | { type: 'secrets.failed' } | { type: 'output.written' } },
      actors: { secrets, proxy },
    }).createMachine({
      id: 'agent',
      invoke: [
        { id: 'secrets', src: 'secrets', systemId: 'secrets', input: settings },
        { id: 'xds-proxy', src: 'proxy', systemId: 'xds-proxy' },
      ],
      entry: sendTo('secrets', { type: 'secrets.start' }),
      on: { 'secrets.ready': {}, 'secrets.failed': {}, 'output.written': {} },
    });
    this.agent = startRoot(logic, {
      id: 'agent',
      input: undefined,
      clock: this.clock as never,
      ...(options.records !== false && { recorder }),
      onError: (error) => this.violations.push(`a chart failed: ${String(error)}`),
    });
    this.#secrets = this.agent.system.get('secrets');
  }

  get now(): number {
    return this.clock.now();
  }

  /** Wall-clock time, which can be set. */
  get wallMs(): number {
    return this.clock.now() + this.#wallOffsetMs;
  }

  /** Steps the wall clock, as reported by `awaitClockStep`. */
  stepClock(stepMs: number): void {
    this.#wallOffsetMs += stepMs;
    const watchers = [...this.#stepWatchers];
    this.#stepWatchers.clear();
    for (const watcher of watchers) settleCall(watcher, { value: undefined });
  }

  passTime(ms: number): void {
    passTime(this.clock, ms);
  }

  events(type: string): Record<string, unknown>[] {
    return this.records.flatMap((record) =>
      record.kind === 'event' && record.event.type === type ? [record.event as unknown as Record<string, unknown>] : [],
    );
  }

  // ---- Envoy and the control plane

  subscribeRoots(): void {
    if (this.subscribesRoots) return;
    this.subscribesRoots = true;
    this.#takenRoots = '';
    this.#report({ type: 'sds.subscribed', name: rootsName });
  }

  unsubscribeRoots(): void {
    if (!this.subscribesRoots) return;
    this.subscribesRoots = false;
    this.#report({ type: 'sds.unsubscribed', name: rootsName });
  }

  /** Envoy requests its certificate, disconnects, or accepts what it is served. */
  requestCertificate(): void {
    this.#report({ type: 'sds.subscribed', name: identityName });
  }

  leaveCertificate(): void {
    this.#report({ type: 'sds.unsubscribed', name: identityName });
  }

  takeCertificate(version = this.servedSecrets.get(identityName) ?? ''): void {
    this.#report({ type: 'sds.acknowledged', name: identityName, version });
  }

  takeRoots(): void {
    const version = this.servedSecrets.get(rootsName);
    if (!this.subscribesRoots || version === undefined) return;
    this.#takenRoots = version;
    this.#report({ type: 'sds.acknowledged', name: rootsName, version });
  }

  refuseRoots(): void {
    const version = this.servedSecrets.get(rootsName);
    if (!this.subscribesRoots || version === undefined) return;
    this.#report({ type: 'sds.rejected', name: rootsName, version, reason: 'no certificate' });
  }

  bundle(hash: string, tainted: readonly string[] = []): void {
    this.#secrets?.send({
      type: 'trust-bundle.received',
      hash,
      roots: [],
      members: this.bundles.get(hash) ?? [],
      tainted,
    } as never);
  }

  /** Renews a certificate early, as when its inputs change. */
  renewCertificate(): void {
    const secret = this.#child('secret-0');
    secret?.send({ type: 'secret.refresh', parts: { authorities: '', bundle: '' } } as never);
  }

  /** Delivers the delayed response. */
  respondLate(): void {
    const pending = this.#pendingRequest;
    this.#pendingRequest = undefined;
    if (pending !== undefined) settleCall(pending.call, { value: pending.value });
  }

  // ---- effects

  #withEffects(machines: SecretMachines): typeof secretsMachine {
    return machines.secrets.provide({
      actors: {
        probeServer: scriptedPromise(({ self }) => settleCall(self, { value: 'nobody' })),
        serveSecrets: scriptedCallback<SdsOrder, { socket: string }>({
          start: ({ self }) => {
            this.#server = self;
          },
          receive: ({ self }, order) => this.#serve(self, order),
        }),
        writeOutput: scriptedCallback<OutputWrite, undefined>({
          start: () => {},
          receive: ({ self }, { certificate }) => {
            this.outputWrites.push({ atMs: this.now, certificate });
            const reason = this.outputError;
            reportEvent(self, reason === undefined ? { type: 'output.written' } : { type: 'output.failed', reason });
          },
        }),
        secret: machines.secret.provide({
          actors: {
            obtain: scriptedPromise<ObtainResult, ObtainOrder>(({ self, input }) => this.#obtain(self, input)),
            awaitClockStep: scriptedPromise<void, undefined>(
              ({ self }) => void this.#stepWatchers.add(self),
              ({ self }) => void this.#stepWatchers.delete(self),
            ),
            readClock: scriptedPromise<{ atMs: number }, undefined>(({ self }) =>
              settleCall(self, { value: { atMs: this.wallMs } }),
            ),
          },
        }),
      },
    });
  }

  #obtain(call: AnyActorRef, { source, credential: shownCredential, version, parts }: ObtainOrder): void {
    const clockReading = { atMs: this.wallMs, draw: this.#draw() };
    if (source === 'roots') {
      const rootsVersion = `${parts.authorities}+${parts.bundle}`;
      if (this.composesBundles)
        settleCall(call, {
          value: {
            ...clockReading,
            outcome: 'obtained',
            version: rootsVersion,
            authorities: '',
            root: '',
            serialNumber: '',
            endsAtMs: null,
          },
        });
      return;
    }
    this.attempts.push({ atMs: this.now, shownCredential: shownCredential });
    const end = this.#endOf.get(version);
    if (shownCredential === 'certificate' && (end === undefined || end <= this.wallMs)) {
      this.violations.push(`the certificate ${version} has ended, and is shown`);
    }
    const value = this.#resultOf(clockReading, this.respondTo(shownCredential));
    if (value === undefined) return;
    if (this.authorityResponds === 'never') this.#pendingRequest = { call, value };
    else settleCall(call, { value });
  }

  #resultOf(clockReading: { atMs: number; draw: number }, word: AuthorityResponse): ObtainResult | undefined {
    if (word === 'silent') return undefined;
    if (word !== 'signs') {
      const pushbackMs = word === 'busy' ? this.pushbackMs : 0;
      return { ...clockReading, outcome: 'refused', reason: word, unknown: word === 'not known', pushbackMs };
    }
    const version = `certificate-${++this.#signedCount}`;
    this.#rootOf.set(version, this.root);
    this.#endOf.set(version, this.wallMs + this.lifeMs);
    return {
      ...clockReading,
      outcome: 'obtained',
      version,
      authorities: this.root,
      root: this.root,
      serialNumber: version,
      endsAtMs: this.wallMs + this.lifeMs,
    };
  }

  #serve(server: AnyActorRef, order: SdsOrder): void {
    if (order.type === 'sds.open') reportEvent(server, { type: 'sds.listening' });
    if (order.type === 'sds.withdraw') this.servedSecrets.delete(order.name);
    if (order.type !== 'sds.serve') return;
    if (order.name === identityName) this.#checkInvariants(order.version);
    else if (this.servedSecrets.get(order.name) !== order.version) this.#rootsServedAt = this.now;
    if (order.name === rootsName && this.servedSecrets.get(rootsName) !== order.version) this.#takenRoots = '';
    this.servedSecrets.set(order.name, order.version);
  }

  /** Checks from outside, independently of the charts. */
  #checkInvariants(version: string): void {
    const root = this.#rootOf.get(version) ?? '';
    const roots = this.servedSecrets.get(rootsName) ?? '';
    const [authorities, bundle = ''] = roots.split('+');
    if (authorities !== root && !this.bundles.get(bundle)?.includes(root)) {
      this.violations.push(`${version} of ${root} is handed out, and Envoy has the roots ${roots || 'none'}`);
    } else if (this.subscribesRoots && this.#takenRoots !== roots && this.now < this.#rootsServedAt + trustLimitMs) {
      this.violations.push(`${version} of ${root} is handed out before Envoy trusts ${roots}`);
    }
    if ((this.#endOf.get(version) ?? 0) <= this.wallMs) this.violations.push(`${version} has ended, and is handed out`);
    const previousNumber = Number(this.servedSecrets.get(identityName)?.split('-')[1] ?? 0);
    if (Number(version.split('-')[1]) < previousNumber)
      this.violations.push(`${version} is handed out after certificate-${previousNumber}`);
  }

  #report(event: { type: string; [field: string]: unknown }): void {
    if (this.#server !== undefined) reportEvent(this.#server, event);
  }

  #child(name: string): AnyActorRef | undefined {
    const snapshot = this.#secrets?.getSnapshot() as { children: Record<string, AnyActorRef> } | undefined;
    return snapshot?.children[name];
  }
}

/** Fires timers at their times; searches the soonest of a thousand timers without sorting. */
export function passTime(clock: VirtualClock, ms: number): void {
  const untilMs = clock.now() + ms;
  for (let next = clock.nextDueMs(); next !== undefined && next <= untilMs; next = clock.nextDueMs()) clock.fireNext();
  clock.advance(untilMs - clock.now());
}
