/**
 * The rotation of the root with its participants, for the explorer: the real chart of the authority, and for each workload the real charts of its
 * secrets, with scripted effects and an Envoy that accepts secrets after arbitrary delays. The choices of the explorer: an operator's orders
 * (`rotate`, `taint`, `revert`), a kill and a start of the control plane (`kill`, `start`), a report of the ledger (`ledger`), roots over xDS
 * (`tell:0`), a response of the authority (`sign:0`, `away:0`; `lost:0` is a signed certificate that never arrives), what Envoy accepts (`take:0` the
 * roots, `accept:0` its certificate), and the next deadline of an actor (`tick:0:secret-0.pause`). Each actor has a separate clock.
 *
 * Bounds: numbers of rotations and faults. Certificates are renewed and do not expire; an Envoy does not hang: before it has accepted a signed
 * certificate, at most one more is signed.
 */
import { type AnyActorRef, type AnyEventObject, sendTo, setup, spawnChild, stopChild } from 'xstate';
import { identityName, rootsName } from '../../machines/agent/secrets/held-secrets.ts';
import { type ObtainOrder, type ObtainResult, secretMachine } from '../../machines/agent/secrets/secret.machine.ts';
import { secretsMachine } from '../../machines/agent/secrets/secrets.machine.ts';
import type {
  CertificateServed,
  SdsOrder,
  SecretsStart,
  TrustBundleServed,
} from '../../machines/agent/secrets-protocol.ts';
import { defaultSettings, type IdentitySettings } from '../../machines/agent/settings.ts';
import {
  type AuthorityReading,
  authorityMachine,
  type Candidate,
  type Journal,
} from '../../machines/discovery/ca/authority.machine.ts';
import type { LeafCertificatesAwait, RootsAwait } from '../../machines/discovery/ca/authority-protocol.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';
import { WorkloadLedger } from '../../src/discovery/ca/ledger/workload-ledger.ts';

export interface IdentityBounds {
  readonly workloads: number;
  readonly rotations: number;
  readonly faults: number;
}

export interface IdentityMachines {
  readonly authority: typeof authorityMachine;
  readonly secrets: typeof secretsMachine;
  readonly secret: typeof secretMachine;
  readonly ledger: typeof WorkloadLedger;
}

const defaultMachines: IdentityMachines = {
  authority: authorityMachine,
  secrets: secretsMachine,
  secret: secretMachine,
  ledger: WorkloadLedger,
};

interface Workload {
  /** The pending request for its certificate. */
  readonly call: AnyActorRef | undefined;
  readonly server: AnyActorRef | undefined;
  /** The certificate that Envoy is served. `root-1~0`: the signer, and its rank among those that any participant knows. */
  readonly certificate: string;
  /** The certificate that Envoy has. */
  readonly envoyCertificate: string;
  /** The authority's records, in signing order. */
  readonly issuedCertificates: readonly string[];
  /** The certificate that Envoy has, according to the agent; reported once there is a stream. */
  readonly reportedCertificate: string;
  readonly reportedRoots: string | undefined;
  /** The last bundle over xDS. */
  readonly sentBundle: string;
  /** Roots that Envoy is served, and those that it has accepted. */
  readonly roots: string;
  readonly acceptedRoots: string;
  /** Envoy has been served roots that it has not accepted yet, possibly the same ones again. */
  readonly owes: boolean;
}

interface State {
  readonly rotations: number;
  readonly faults: number;
  readonly journal: Journal | undefined;
  /** Number of roots created so far. */
  readonly rootCount: number;
  readonly roots: readonly string[];
  readonly tainted: string | null;
  readonly signer: string;
  readonly pendingAwait: RootsAwait | LeafCertificatesAwait | undefined;
  readonly ledger: AnyActorRef | undefined;
  readonly isUp: boolean;
  readonly workloads: readonly Workload[];
  readonly violations: readonly InvariantViolation[];
}

const endsAtMs = 24 * 3_600_000;
const minPauseMs = 500;
const textOf = (roots: Iterable<string>): string => [...new Set(roots)].filter(Boolean).sort().join('+');
/** Marks a certificate that never arrived. */
const lostSuffix = '!';
const mayBeSigned = (issued: readonly string[]): boolean =>
  issued.filter((one) => !one.endsWith(lostSuffix)).length < 2;
const rootOf = (certificate: string): string => certificate.split('~')[0]!;
/** Timers for operations that an Envoy, a disk or a clock completes immediately or never: bounds of this world. */
const silentTimers = /\.(checkInterval|settleTime|trustLimit|obtainLimit|clockLimit|openLimit|detectLimit|debounce)$/;

export class IdentityWorld implements World {
  readonly spawnCount = 0;
  readonly isEnding = false;
  readonly #planeSystem = new SymbolicSystem();
  readonly #hosts: readonly SymbolicSystem[];
  readonly #control: AnyActorRef;
  readonly #agents: readonly AnyActorRef[];
  readonly #ledger: typeof WorkloadLedger;
  #state: State;

  constructor(bounds: IdentityBounds, machines: Partial<IdentityMachines> = {}) {
    const { authority, secrets, secret, ledger } = { ...defaultMachines, ...machines };
    this.#ledger = ledger;
    const workload: Workload = {
      ...{
        call: undefined,
        server: undefined,
        certificate: '',
        envoyCertificate: '',
        issuedCertificates: [],
        reportedCertificate: '',
      },
      ...{ reportedRoots: undefined },
      ...{ sentBundle: '', roots: '', acceptedRoots: '', owes: false },
    };
    this.#state = {
      ...{
        rotations: bounds.rotations,
        faults: bounds.faults,
        journal: undefined,
        rootCount: 0,
        roots: [],
        tainted: null,
      },
      ...{ signer: '', pendingAwait: undefined, ledger: undefined, isUp: false, violations: [] },
      workloads: Array.from({ length: bounds.workloads }, () => workload),
    };
    this.#control = this.#planeSystem.start(this.#controlPlane(authority), {
      id: 'discovery',
      input: undefined,
      isSilenced: (timer) => silentTimers.test(timer),
    });
    this.apply('start');
    this.#hosts = this.#state.workloads.map(() => new SymbolicSystem());
    this.#agents = this.#hosts.map((host, index) =>
      host.start(this.#agent(index, secrets, secret), {
        id: 'agent',
        input: undefined,
        isSilenced: (timer) => silentTimers.test(timer),
      }),
    );
    // Every workload has a certificate and trusts its root.
    for (const index of this.#state.workloads.keys())
      for (const choice of ['sign', 'take', 'accept', 'tell', 'take']) {
        const name = `${choice}:${index}`;
        if (this.choices().some((one) => one.name === name)) this.apply(name);
      }
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  /** Whether there is one root, which signed every certificate and is trusted by every workload, and no request is pending. */
  get isGoalReached(): boolean {
    const { isUp, journal, signer, workloads } = this.#state;
    return (
      isUp &&
      journal?.stage === 'steady' &&
      workloads.every(
        ({ envoyCertificate, acceptedRoots }) =>
          rootOf(envoyCertificate) === signer && acceptedRoots.split('+').includes(signer),
      )
    );
  }

  choices(): readonly WorldChoice[] {
    const { rotations, faults, isUp, workloads, violations } = this.#state;
    if (violations.length > 0) return [];
    const names: [name: string, free: boolean, isPossible: boolean][] = [
      ['rotate', false, isUp && rotations > 0],
      ['taint', false, isUp && rotations > 0 && faults > 0],
      ['revert', false, isUp && faults > 0],
      ['kill', false, isUp && faults > 0],
      ['start', true, !isUp],
      ['ledger', true, this.#isAwaitFulfilled()],
      ...workloads.flatMap(
        (
          { call, sentBundle, owes, certificate, envoyCertificate, issuedCertificates },
          index,
        ): [string, boolean, boolean][] => [
          [`sign:${index}`, true, isUp && call !== undefined && mayBeSigned(issuedCertificates)],
          [`away:${index}`, false, call !== undefined && faults > 0],
          [`lost:${index}`, false, isUp && call !== undefined && mayBeSigned(issuedCertificates) && faults > 0],
          [`tell:${index}`, true, isUp && sentBundle !== this.#tellable()],
          [`take:${index}`, true, owes],
          [`accept:${index}`, true, certificate !== envoyCertificate],
          ...this.#timersOf(index).map((timer): [string, boolean, boolean] => [`tick:${index}:${timer}`, true, true]),
        ],
      ),
      ...this.#planeSystem.zone
        .firableTimers()
        .map((timer): [string, boolean, boolean] => [`tick:control:${timer}`, true, true]),
    ];
    return names.flatMap(([name, free, isPossible]) => (isPossible ? [{ name, free }] : []));
  }

  #timersOf(index: number): string[] {
    return (this.#hosts?.[index]?.zone.firableTimers() ?? []).filter((timer) => !timer.startsWith('refused'));
  }

  apply(choice: string): void {
    const [kind = '', subject = '', timer = ''] = choice.split(':');
    const index = Number(subject);
    switch (kind) {
      case 'rotate':
      case 'taint':
      case 'revert':
        if (kind !== 'revert') this.#set({ rotations: this.#state.rotations - 1 });
        if (kind !== 'rotate') this.#spendFault();
        this.#authority()?.send({ type: kind === 'rotate' ? 'rotation.start' : `rotation.${kind}` });
        break;
      case 'kill':
        this.#spendFault();
        this.#control.send({ type: 'down' });
        this.#set({ isUp: false, pendingAwait: undefined, ledger: undefined });
        for (const one of this.#state.workloads.keys()) this.#changeWorkload(one, { sentBundle: '' });
        break;
      case 'start':
        this.#control.send({ type: 'up' });
        this.#set({ isUp: true });
        this.#authority()?.send({ type: 'authority.load' });
        break;
      case 'ledger':
        this.#reportFulfilled();
        break;
      case 'sign':
        this.#signCertificate(index);
        break;
      case 'away':
        this.#spendFault();
        this.#refuseRequest(index);
        break;
      case 'lost':
        this.#issue(index, lostSuffix);
        this.#spendFault();
        this.#refuseRequest(index);
        break;
      case 'accept':
        this.#acceptCertificate(index);
        break;
      case 'tell':
        this.#sendBundle(index);
        break;
      case 'take':
        this.#takeRoots(index);
        break;
      default:
        if (subject === 'control') this.#planeSystem.fire(timer);
        else this.#hosts[index]!.fire(timer);
    }
    for (const system of [this.#planeSystem, ...(this.#hosts ?? [])]) system.elapse();
    this.#checkInvariants();
  }

  key(): string {
    const { workloads, ledger: _, ...state } = this.#state;
    const workloadKeys = workloads.map(({ call, server: __, ...rest }) => ({ ...rest, isAsked: call !== undefined }));
    let key = JSON.stringify([state, workloadKeys]);
    for (const system of [this.#planeSystem, ...this.#hosts]) {
      key += system.zone.orderKey();
      for (const actor of system.actors()) {
        const { value, context } = actor.getSnapshot() as { value?: unknown; context?: object };
        if (value !== undefined) key += `${actor.id} ${JSON.stringify(value)} ${keyOf(context ?? {})}\n`;
      }
    }
    return key;
  }

  save(): () => void {
    const state = this.#state;
    const restores = [this.#planeSystem, ...this.#hosts].map((system) => system.save());
    return () => {
      this.#state = state;
      for (const restore of restores) restore();
    };
  }

  // ---- violations

  #checkInvariants(): void {
    const { workloads } = this.#state;
    for (const [index, { certificate, roots, acceptedRoots }] of workloads.entries()) {
      if (certificate !== '' && !this.#isTrusted(index, rootOf(certificate))) {
        this.#recordViolation(
          'no workload has a certificate before its root is trusted',
          `${index} has ${certificate} and trusts ${acceptedRoots} (served ${roots})`,
        );
      }
      for (const [other, { certificate: next, envoyCertificate }] of workloads.entries()) {
        if (other === index || acceptedRoots === '') continue;
        const untrustedCertificate = [envoyCertificate, next].find(
          (one) => one !== '' && !this.#isTrusted(index, rootOf(one)),
        );
        if (untrustedCertificate === undefined) continue;
        this.#recordViolation(
          'no workload is disconnected',
          `${index} trusts ${acceptedRoots} (served ${roots}), and ${other} shows ${untrustedCertificate}`,
        );
      }
    }
    for (const failure of [this.#planeSystem, ...(this.#hosts ?? [])].flatMap((system) => system.failures))
      this.#recordViolation('no chart fails', failure);
  }

  /** Based on the accepted and the next roots: only Envoy knows which of them apply. */
  #isTrusted(index: number, root: string): boolean {
    const { roots, acceptedRoots } = this.#state.workloads[index]!;
    return [roots, acceptedRoots].every((set) => set.split('+').includes(root));
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  // ---- the control plane

  #controlPlane(authority: typeof authorityMachine) {
    const scripted = authority.provide({
      actors: {
        workloadLedger: scriptedCallback<RootsAwait | LeafCertificatesAwait, undefined>({
          start: ({ self }) => this.#set({ ledger: self }),
          receive: (_, awaited) => this.#set({ pendingAwait: awaited }),
        }),
        watchAuthority: scriptedCallback<{ type: never }, undefined>({ start: () => {} }),
        loadAuthority: scriptedPromise<AuthorityReading, undefined>(({ self }) => {
          const { journal } = this.#state;
          settleCall(self, { value: journal === undefined ? { outcome: 'absent' } : { outcome: 'resumed', journal } });
        }),
        prepareRoot: scriptedPromise<{ id: string }, undefined>(({ self }) => {
          this.#set({ rootCount: this.#state.rootCount + 1 });
          settleCall(self, { value: { id: `root-${this.#state.rootCount}` } });
        }),
        readCandidate: scriptedPromise<Candidate, { signer: string }>(({ self }) =>
          settleCall(self, { value: { outcome: 'same' } }),
        ),
        isRootDue: scriptedPromise<boolean, { signer: string }>(({ self }) => settleCall(self, { value: false })),
        writeJournal: scriptedPromise<void, Journal>(({ self, input }) => {
          this.#set({ journal: input });
          settleCall(self, { value: undefined });
        }),
      },
      actions: {
        publishRoots: (_, { roots, tainted }) => this.#set({ roots, tainted }),
        signWith: (_, { signer }) => this.#set({ signer }),
      },
    });
    return setup({ actors: { authority: scripted } }).createMachine({
      id: 'discovery',
      on: {
        up: { actions: spawnChild('authority', { id: 'authority', input: { checkMs: 3_600_000, settleMs: 100 } }) },
        down: { actions: stopChild('authority') },
        '*': {},
      },
    });
  }

  #authority(): AnyActorRef | undefined {
    return (this.#control.getSnapshot() as { children: Record<string, AnyActorRef> }).children.authority;
  }

  /** Queries the real ledger about the recorded certificates. */
  #isAwaitFulfilled(): boolean {
    const { pendingAwait, workloads, isUp } = this.#state;
    if (!isUp || pendingAwait === undefined) return false;
    const ledger = new this.#ledger({ maxLeafMs: endsAtMs });
    for (const [index, { issuedCertificates, reportedRoots }] of workloads.entries()) {
      const name = { identity: 'spiffe://td/ns/a/sa/b', node: String(index) };
      for (const serialNumber of issuedCertificates) {
        ledger.apply({ issued: { ...name, authority: rootOf(serialNumber), serialNumber, endsAt: endsAtMs } });
      }
      if (reportedRoots !== undefined) ledger.apply({ trusted: { ...name, roots: reportedRoots.split('+') } });
    }
    const missingEntries =
      pendingAwait.type === 'roots.await'
        ? ledger.missingTrust(pendingAwait.roots, 0, 0)
        : ledger.missingRenewal([pendingAwait.authority], 0);
    return missingEntries.count === 0;
  }

  #reportFulfilled(): void {
    const { pendingAwait, ledger } = this.#state;
    this.#set({ pendingAwait: undefined });
    if (pendingAwait === undefined) return;
    const result: AnyEventObject =
      pendingAwait.type === 'roots.await'
        ? { type: 'roots.trusted', roots: pendingAwait.roots }
        : { type: 'leaf-certificates.unused', authority: pendingAwait.authority };
    reportEvent(ledger!, result);
  }

  #signCertificate(index: number): void {
    const { signer, roots } = this.#state;
    const version = this.#issue(index);
    this.#respond(index, {
      outcome: 'obtained',
      ...{ version, authorities: textOf(roots), root: signer, serialNumber: version, endsAtMs, atMs: 0, draw: 0.5 },
    });
  }

  #issue(index: number, mark = ''): string {
    const { signer } = this.#state;
    const { issuedCertificates, certificate, envoyCertificate, reportedCertificate } = this.#state.workloads[index]!;
    const knownCertificates = new Set([...issuedCertificates, certificate, envoyCertificate, reportedCertificate]);
    let number = 0;
    while (knownCertificates.has(`${signer}~${number}`) || knownCertificates.has(`${signer}~${number}${lostSuffix}`))
      number++;
    const version = `${signer}~${number}${mark}`;
    this.#changeWorkload(index, { issuedCertificates: [...issuedCertificates, version] });
    return version;
  }

  #acceptCertificate(index: number): void {
    const { certificate, server } = this.#state.workloads[index]!;
    this.#changeWorkload(index, { envoyCertificate: certificate });
    reportEvent(server!, { type: 'sds.acknowledged', name: identityName, version: certificate });
  }

  /** Reports over a stream; without one, the workload reports over its next stream. */
  #noteArrival(index: number): void {
    const { sentBundle, issuedCertificates, reportedCertificate } = this.#state.workloads[index]!;
    if (sentBundle !== '' && issuedCertificates.includes(reportedCertificate))
      this.#changeWorkload(index, {
        issuedCertificates: issuedCertificates.slice(issuedCertificates.indexOf(reportedCertificate)),
      });
  }

  #refuseRequest(index: number): void {
    const refusal = { outcome: 'refused', reason: 'away', unknown: false, pushbackMs: 0 } as const;
    this.#hosts[index]!.disarm('refused');
    this.#hosts[index]!.arm('refused', 0, 'mark');
    this.#respond(index, { ...refusal, atMs: 0, draw: 0.5 });
  }

  #respond(index: number, value: ObtainResult): void {
    const { call } = this.#state.workloads[index]!;
    this.#changeWorkload(index, { call: undefined });
    settleCall(call!, { value });
  }

  // ---- the agents

  #agent(index: number, secrets: typeof secretsMachine, secret: typeof secretMachine) {
    const settings: IdentitySettings = {
      ...defaultSettings.identity,
      ...{ source: 'authority', reason: 'a token', socket: 's' },
    };
    const scripted = secrets.provide({
      actors: {
        probeServer: scriptedPromise(({ self }) => settleCall(self, { value: 'nobody' })),
        serveSecrets: scriptedCallback<SdsOrder, { socket: string }>({
          start: ({ self }) => this.#changeWorkload(index, { server: self }),
          receive: ({ self }, order) => this.#serve(index, self, order),
        }),
        writeOutput: scriptedCallback({ start: () => {} }),
        secret: secret.provide({
          actors: {
            obtain: scriptedPromise<ObtainResult, ObtainOrder>(
              ({ self, input }) => this.#obtain(index, self, input),
              ({ self }) => {
                if (this.#state.workloads[index]!.call === self) this.#changeWorkload(index, { call: undefined });
              },
            ),
            awaitClockStep: scriptedPromise<void, undefined>(() => {}),
            // Read when half of the lifetime has passed.
            readClock: scriptedPromise<{ atMs: number }, undefined>(({ self }) =>
              settleCall(self, { value: { atMs: endsAtMs } }),
            ),
          },
        }),
      },
    });
    const proxy = scriptedCallback<TrustBundleServed | CertificateServed, undefined>({
      start: () => {},
      receive: (_, secretEvent) => {
        const { sentBundle } = this.#state.workloads[index]!;
        if (secretEvent.type === 'certificate.served') {
          this.#changeWorkload(index, { reportedCertificate: secretEvent.serialNumber });
          this.#noteArrival(index);
        } else if (sentBundle.split('!')[0] === secretEvent.hash)
          this.#changeWorkload(index, { reportedRoots: secretEvent.hash });
      },
    });
    return setup({ actors: { secrets: scripted, proxy } }).createMachine({
      id: 'agent',
      invoke: [
        { id: 'secrets', src: 'secrets', systemId: 'secrets', input: settings },
        { id: 'xds-proxy', src: 'proxy', systemId: 'xds-proxy' },
      ],
      entry: sendTo('secrets', { type: 'secrets.start' } satisfies SecretsStart),
      on: { '*': {} },
    });
  }

  #obtain(index: number, call: AnyActorRef, { source, parts }: ObtainOrder): void {
    if (source === 'roots') {
      const version = textOf([...parts.authorities.split('+'), ...parts.bundle.split('+')]);
      const result = { outcome: 'obtained', version, authorities: '', root: '', serialNumber: '', endsAtMs: null };
      settleCall(call, { value: { ...result, atMs: 0, draw: 0.5 } });
      return;
    }
    const host = this.#hosts?.[index];
    if (host?.zone.has('refused')) {
      const sinceMs = host.zone.minElapsedMs('refused');
      if (sinceMs < minPauseMs)
        this.#recordViolation(
          'a failed request is repeated after a delay',
          `${index} requests again after ${sinceMs} ms`,
        );
      host.disarm('refused');
    }
    this.#changeWorkload(index, { call });
  }

  #serve(index: number, server: AnyActorRef, order: SdsOrder): void {
    if (order.type === 'sds.open') {
      reportEvent(server, { type: 'sds.listening' });
      for (const name of [rootsName, identityName]) reportEvent(server, { type: 'sds.subscribed', name });
    }
    if (order.type !== 'sds.serve') return;
    if (order.name === identityName) this.#changeWorkload(index, { certificate: order.version });
    else if (order.version !== this.#state.workloads[index]!.roots)
      this.#changeWorkload(index, { roots: order.version, owes: true });
  }

  #takeRoots(index: number): void {
    const { roots, server } = this.#state.workloads[index]!;
    this.#changeWorkload(index, { acceptedRoots: roots, owes: false });
    reportEvent(server!, { type: 'sds.acknowledged', name: rootsName, version: roots });
  }

  /** The bundle over xDS, with its tainted root. */
  #tellable(): string {
    const { roots, tainted } = this.#state;
    return `${textOf(roots)}!${tainted ?? ''}`;
  }

  #sendBundle(index: number): void {
    const message = this.#tellable();
    const [hash = '', taintedRoot = ''] = message.split('!');
    // Its earlier report of other roots no longer counts (RootsForAgents).
    const { reportedRoots } = this.#state.workloads[index]!;
    this.#changeWorkload(index, {
      sentBundle: message,
      reportedRoots: reportedRoots === hash ? reportedRoots : undefined,
    });
    this.#noteArrival(index);
    const event = {
      type: 'trust-bundle.received',
      ...{ hash, roots: [], members: hash.split('+'), tainted: taintedRoot === '' ? [] : [taintedRoot] },
    };
    this.#agents[index]!.system.get('secrets').send(event);
  }

  // ---- the state

  #spendFault(): void {
    this.#set({ faults: this.#state.faults - 1 });
  }

  #changeWorkload(index: number, change: Partial<Workload>): void {
    const { workloads } = this.#state;
    this.#set({ workloads: workloads.with(index, { ...workloads[index]!, ...change }) });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}

const keys = new WeakMap<object, string>();
/** The number and duration of failures are only reported, and the length of a backoff was chosen before. */
const irrelevantFields = new Set(['failures', 'pauseMs', 'nowMs', 'lacking', 'grace', 'reason', 'socket']);

function keyOf(context: object): string {
  const cachedKey = keys.get(context);
  if (cachedKey !== undefined) return cachedKey;
  const key = JSON.stringify(context, (name, value: unknown) => (irrelevantFields.has(name) ? undefined : value));
  keys.set(context, key);
  return key;
}
