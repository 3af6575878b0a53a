/** The machines that chartpilot itself is made of, by their names, with samples of what happens to them. */

import type { AnyStateMachine } from 'xstate';
import type { Adoption } from '../../../machines/agent/envoy/adoption.ts';
import type { EpochOver } from '../../../machines/agent/envoy/supervisor-context.ts';
import { type HeldSecret, isTaken } from '../../../machines/agent/secrets/held-secrets.ts';
import { type AgentSettings, defaultSettings } from '../../../machines/agent/settings.ts';
import type { Payload, SampledState, Samples } from './samples.ts';

export interface OwnMachine {
  readonly name: string;
  /** Below the package's root. */
  readonly file: string;
  readonly export: string;
  readonly samples: Samples;
  load(): Promise<AnyStateMachine>;
}

interface EpochSeen {
  readonly phase: string;
  readonly name: string;
  readonly epoch: number;
  readonly baseId?: number;
  readonly adminPort?: number;
  readonly pid?: number;
  readonly digest?: string;
  readonly orders?: number;
  readonly binary?: string;
}

interface Desired {
  readonly digest: string;
  readonly orders: number;
  readonly binary: string;
}

const settings = { ...defaultSettings, watch: { ...defaultSettings.watch, directories: ['certs'] } };

/** What every epoch that the supervisor knows of may tell. */
const ofEachEpoch =
  (...payloads: readonly Payload[]) =>
  ({ context }: SampledState): readonly Payload[] => {
    const known = context.epochs as readonly EpochSeen[];
    // Where none is known, a report comes from one that is forgotten.
    const seen = known.length > 0 ? known : [{ name: 'epoch-9', epoch: 9 }];
    return seen.flatMap(({ name, epoch }) => payloads.map((payload) => ({ name, epoch, ...payload })));
  };

const supervisorInput = (change: Partial<typeof settings>) => ({
  baseIds: [7, 8],
  settings: { ...settings, retry: { ...settings.retry, budget: 1 }, ...change },
});

/** What the supervisor says to itself about an end comes of that end, and from nobody else. */
const saidToItself: Record<EpochOver['type'], readonly Payload[]> = {
  'serving.failed': [],
  'serving.doomed': [],
  'newcomer.failed': [],
  'newcomer.gone': [],
  'newcomer.orphaned': [],
  'base-id.blocked': [],
  'epoch.gone': [],
};

const supervisorSamples: Samples = {
  inputs: [
    supervisorInput({}),
    supervisorInput({ hotRestart: false }),
    supervisorInput({ restartPolicy: 'exit' }),
    supervisorInput({ exitOnZeroActiveConnections: true }),
  ],
  events: {
    ...saidToItself,
    'config.changed': ({ context }) => {
      // What it runs already, and something else: more bring nothing new.
      const now = (context.desired as Desired).digest;
      const other = { digest: now === 'digest-1' ? 'digest-2' : 'digest-1', files: 1 };
      return now === '' ? [other] : [other, { digest: now, files: 1 }];
    },
    'binary.changed': ({ value, context }) => {
      // Between a request and its grant no time passes where there is a token: there it is as any other news.
      if ((value as { running?: unknown }).running === 'waiting for a start') return [];
      const isFirst = (context.desired as Desired).binary === '';
      return [{ binary: isFirst ? 'second' : '', description: isFirst ? '1.40.0' : '1.39.3' }];
    },
    'binary.rejected': [{ reason: 'its hot restart version is 11.112' }],
    'config.rejected': [{ reason: 'tls.key is not the key of tls.crt' }],
    'supervisor.restart': [{ reason: 'SIGHUP' }],
    'supervisor.stop': [{ reason: 'SIGTERM' }],
    'child.abort': ({ context }) => {
      const epochs = context.epochs as readonly EpochSeen[];
      if (epochs.some(({ phase }) => phase === 'live')) return [{ why: 'not live in time' }];
      if (epochs.some(({ phase }) => phase === 'leaving'))
        return [{ why: 'its parent hangs' }, { why: 'its parent is gone' }];
      // What it was started for is what is wanted, or something newer is.
      const { digest, orders } = context.desired as Desired;
      const isCurrent = epochs.at(-1)?.digest === digest && epochs.at(-1)?.orders === orders;
      return isCurrent ? [] : [{ why: 'something newer is wanted' }];
    },
    'epoch.started': ofEachEpoch({ pid: 100, adminPort: 15_000 }),
    'epoch.live': ofEachEpoch({ timeToLiveMs: 300, unseenMs: 50 }),
    'epoch.waiting': ofEachEpoch({ reason: '503 INITIALIZING' }),
    'epoch.not-live': ofEachEpoch({ reason: '503 INITIALIZING' }),
    'epoch.unkillable': ofEachEpoch({ reason: 'SIGKILL has not ended it' }),
    'epoch.healthy': ofEachEpoch({}),
    'epoch.drained': ofEachEpoch({}),
    'epoch.drain-failed': ofEachEpoch({ reason: 'no answer' }),
    'epoch.overdue': ofEachEpoch({}),
    'epoch.exited': ofEachEpoch({ code: 0, signal: null }),
    'epoch.failed': ofEachEpoch(
      { during: 'serving', code: null, signal: 'SIGSEGV', reason: 'signal SIGSEGV', refusedByParent: false },
      { during: 'initializing', code: 1, signal: null, reason: 'exit code 1', refusedByParent: true },
    ),
  },
  outcomes: {
    'start-limiter': [],
    // Not before it was given up: until then the supervisor ends it.
    restart: ({ context }) =>
      context.restart === undefined ? [{ output: { end: 'failed' } }, { output: { end: 'called off' } }] : [],
  },
  // Epochs are known by their place and not by their number, configurations by whether they are the one that is wanted.
  relevant: ({ epochs, desired, failures, recovery, restart, baseIds, provenBinary }) => [
    (epochs as readonly EpochSeen[]).map(
      ({ name, epoch, baseId, adminPort, pid, digest, orders, binary, ...rest }) => ({
        ...rest,
        second: baseId === (baseIds as readonly number[])[1],
        wanted: digest === (desired as Desired).digest && orders === (desired as Desired).orders,
        other: binary !== (desired as Desired).binary,
      }),
    ),
    (desired as Desired).digest === '',
    (desired as Desired).binary === provenBinary,
    failures,
    recovery,
    restart !== undefined,
  ],
};

const restartInput = {
  beside: true,
  needsNobody: false,
  isOutdated: false,
  startLimitMs: 20_000,
  outdatedLimitMs: 5_000,
};

const restartSamples: Samples = {
  inputs: [
    restartInput,
    { ...restartInput, needsNobody: true },
    { ...restartInput, beside: false, needsNobody: true },
    { ...restartInput, beside: false, needsNobody: true, isOutdated: true },
  ],
  events: { 'wanted.changed': [{ isOutdated: true }, { isOutdated: false }] },
};

const shutdownInput = {
  now: false,
  nothingToDrain: false,
  adminPort: 15_000,
  waitsForRequests: false,
  terminationDrainMs: 5_000,
  minimumDrainMs: 5_000,
  stopLimitMs: 12_000,
};

const shutdownSamples: Samples = {
  inputs: [
    shutdownInput,
    { ...shutdownInput, waitsForRequests: true },
    { ...shutdownInput, nothingToDrain: true },
    { ...shutdownInput, now: true },
  ],
  events: {
    'epochs.changed': [
      { nothingToDrain: false, adminPort: 15_001 },
      { nothingToDrain: true, adminPort: 0 },
    ],
  },
  outcomes: { count: [{ output: 0 }, { output: 3 }, { error: 'the admin interface does not answer' }] },
};

const epochSamples: Samples = {
  input: {
    epoch: 0,
    name: 'epoch-0',
    baseId: 7,
    adminPort: 15_000,
    binary: '',
    validate: true,
    certificates: null,
    parentGraceMs: 5_000,
    healthyMs: 60_000,
  },
  events: {
    'epoch.supersede': [
      { parentShutdownMs: 60_000, unseenMs: 50 },
      { parentShutdownMs: 60_000, unseenMs: 60_000 },
    ],
    'epoch.retire': [
      { lingerMs: 60_000, doomed: false },
      { lingerMs: 8_500, doomed: true },
    ],
    'process.spawned': [{ pid: 100, startedAtMs: 0 }],
    'process.exited': [
      { code: null, signal: 'SIGSEGV', lastWords: '', refusedByParent: false, outOfMemory: false },
      { code: 0, signal: null, lastWords: '', refusedByParent: false, outOfMemory: false },
      {
        code: null,
        signal: 'SIGSEGV',
        lastWords: '',
        refusedByParent: false,
        outOfMemory: false,
        tookOverWithinMs: 300,
      },
    ],
    'process.failed': [{ reason: 'spawn ENOENT' }],
    'probe.passed': [{ timeToLiveMs: 300, unseenMs: 50 }],
    'probe.waiting': [{ reason: '503 INITIALIZING' }],
    'probe.failed': [{ reason: '503 INITIALIZING' }],
    'probe.lacking': [{ reason: 'LIVE without 1 refused listeners, tls: no certificate' }],
  },
  outcomes: {
    prepare: [
      { output: { configFile: 'envoy-rev0.json', adminPort: 15_000 } },
      { output: { outdated: 'the certificate files changed after they were checked' } },
      { output: { unwritable: '/etc/istio/proxy: EROFS: read-only file system' } },
      { output: { unreachable: '127.0.0.1:15010 (connection refused)' } },
      { error: 'Envoy refuses envoy-rev0.json' },
    ],
    drain: [{ output: undefined }, { error: 'the admin interface does not answer' }],
  },
};

const certWatcherSamples: Samples = {
  input: settings.watch,
  events: {
    'files.awaited': [
      { missing: [], unreachable: [] },
      { missing: ['certs/tls.crt'], unreachable: [] },
      { missing: [], unreachable: ['certs/tls.crt: ENOTDIR: not a directory'] },
    ],
    'files.changed': [{ path: 'certs/tls.crt' }],
  },
  outcomes: {
    digest: [
      { output: { digest: 'digest-1', files: ['tls.crt', 'tls.key'], problems: [] } },
      { output: { digest: 'digest-2', files: ['tls.crt'], problems: ['tls.key is missing'] } },
      {
        output: { digest: 'digest-3', files: ['tls.crt', 'tls.key'], problems: [], notJudged: 'Envoy gave no verdict' },
      },
      { error: 'the directory cannot be read' },
    ],
  },
  // Not how long the pauses have become.
  relevant: ({ filesInForce, outdatedReadings, missing }) => [filesInForce, outdatedReadings, missing],
};

const directorySamples: Samples = {
  input: { directory: 'certs' },
  events: {
    'files.changed': [{ path: 'certs/tls.crt' }],
    'watch.failed': [
      { reason: 'ENOSPC', seen: null },
      { reason: 'ENOSPC', seen: 'digest-1' },
    ],
  },
};

const statusSamples: Samples = {
  inputs: [
    { port: 15_020, hasEnvoy: true, awaitsNames: false, awaitsApplication: false },
    { port: 15_020, hasEnvoy: true, awaitsNames: false, awaitsApplication: true },
    { port: 15_020, hasEnvoy: true, awaitsNames: true, awaitsApplication: false },
    { port: 15_020, hasEnvoy: false, awaitsNames: true, awaitsApplication: false },
    { port: 15_020, hasEnvoy: false, awaitsNames: false, awaitsApplication: false },
    { port: 0, hasEnvoy: true, awaitsNames: false, awaitsApplication: false },
  ],
  events: {
    'http.listening': [{ port: 15_020 }],
    'http.failed': [{ reason: 'address already in use' }],
    'readiness.asked': [{ request: 1 }],
    'drain.ordered': [{ reason: '' }],
    'envoy.answered': [
      { request: 1, by: 'admin', live: true, detail: 'LIVE', unserved: '' },
      { request: 1, by: 'admin', live: true, detail: 'LIVE', unserved: 'no inbound listener for port 8080' },
      { request: 1, by: 'admin', live: false, detail: 'DRAINING', unserved: '' },
      { request: 1, by: 'port', live: true, detail: 'port 15021 answers', unserved: '' },
    ],
    'listeners.checked': [{ listeners: [] }, { listeners: [{ name: 'tls', why: 'no certificate' }] }],
    'serving.began': [{ name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 100 }],
    'serving.ended': [{ reason: 'Envoy ended' }],
    'handover.began': [{ name: 'epoch-1' }],
  },
};

const identity = {
  source: 'authority',
  reason: 'a token',
  socket: 'sds',
  certificateDirectory: '',
  rootDirectory: '',
  grace: { ratio: 0.5, jitter: 0.01 },
  writesOutput: false,
} as const;
const xdsFailures = { count: 0, isRefusal: false, retryAfterMs: 0, shows: 'token' };

const xdsProxySamples: Samples = {
  inputs: [
    { socket: '/etc/istio/proxy/XDS', hasSecrets: true, probe: null },
    { socket: '/etc/istio/proxy/XDS', hasSecrets: false, probe: null },
    { socket: '', hasSecrets: false, probe: null },
  ],
  events: {
    'socket.listening': [{ socket: '/etc/istio/proxy/XDS' }],
    'socket.failed': [{ reason: 'another agent serves it' }],
    'downstream.opened': [
      { stream: 1, envoy: '0@7', protocol: 'delta', chance: 0.5 },
      { stream: 2, envoy: '0@7', protocol: 'delta', chance: 0.5 },
    ],
    'stream.ended': [{ stream: 1, reason: 'Envoy closed it' }],
    'upstream.failed': [{ stream: 1, reason: 'ECONNREFUSED', isRefusal: false, retryAfterMs: 0 }],
    'upstream.served': [{ stream: 1 }],
    'trust-bundle.received': [{ roots: ['PEM'], hash: 'a', members: [], tainted: [] }],
    'trust-bundle.served': [{ hash: 'a' }],
    'certificate.served': [{ serialNumber: '4A' }],
    'health.changed': [{ healthy: false, message: 'connection refused' }],
  },
  // Not how many streams may be opened now without a pause, nor after how many failures.
  relevant: ({ streams, hasSecrets }) => [(streams as readonly object[]).length > 0, hasSecrets],
};

const xdsStreamSamples: Samples = {
  inputs: [
    { stream: 1, protocol: 'delta', chance: 0.5, certificate: '', health: null, failures: xdsFailures },
    { stream: 1, protocol: 'sotw', chance: 0.5, certificate: '', health: null, failures: { ...xdsFailures, count: 1 } },
  ],
  events: {
    'stream.supersede': [{ reason: 'a newer stream of the same Envoy has taken its place' }],
    'downstream.closed': [{ reason: 'Envoy closed it' }],
    'upstream.opened': [{ shown: 'the token' }],
    'upstream.unreachable': [{ reason: 'ECONNREFUSED', chance: 0.5 }],
    'upstream.lost': [
      { code: 'UNAVAILABLE', reason: 'the connection was closed', retryAfterMs: 0 },
      { code: 'UNAUTHENTICATED', reason: 'the token has ended', retryAfterMs: 0 },
    ],
    'downstream.invalid': [{ reason: 'no discovery request' }],
    'bundle.arrived': [{ roots: ['PEM'], hash: 'a', members: [], tainted: [] }],
    'trust-bundle.served': [{ hash: 'a' }, { hash: 'b' }],
    'trust-bundle.refused': [{ hash: 'a', reason: 'no' }],
    'certificate.tell': [{ serialNumber: '4A' }],
    'health.tell': [{ healthy: false, message: 'connection refused' }],
  },
  relevant: ({ bundle, failures }) => [bundle, (failures as typeof xdsFailures).count > 0],
};

const adoption: Adoption = {
  desired: { digest: 'digest-1', orders: 0, binary: 'first' },
  epochs: [],
  recovery: 'none',
  provenDigest: 'digest-1',
  provenBinary: 'first',
};

const agentSamples: Samples = {
  inputs: [
    { settings },
    { settings: { ...settings, dns: true } },
    { settings: { ...settings, identity } },
    { settings: { ...settings, dns: true, identity } },
    { settings: { ...settings, runsEnvoy: false } },
    { settings: { ...settings, patchedBootstrap: true } },
    { settings: { ...settings, liveRestore: true } },
    { settings: { ...settings, liveRestore: true, givesWay: true, succeeds: true } },
  ],
  events: {
    'dns.listening': [{ addresses: ['127.0.0.1'], port: 15_053 }],
    'dns.failed': [{ reason: 'address already in use' }],
    'signal.received': [{ signal: 'SIGTERM' }, { signal: 'SIGHUP' }, { signal: 'SIGUSR1' }],
    'status.listening': [{ port: 15_020 }],
    'status.failed': [{ reason: 'address already in use' }],
    'epochs.adopted': [{ names: ['epoch-0'] }],
    'secrets.ready': [{ by: 'us', reason: 'a token' }],
    'secrets.failed': [{ reason: 'address already in use' }],
    'xds.listening': [{ socket: '/etc/istio/proxy/XDS' }],
    'xds.failed': [{ reason: 'another agent serves it' }],
    'succession.refused': [{ reason: 'the record could not be written' }],
    'succession.taken': [
      { claimed: { baseIds: [7, 8], sweptFiles: [], adoption } },
      { claimed: { baseIds: [7, 8], sweptFiles: [] } },
    ],
    'succession.failed': [
      { reason: 'it has ended', claimed: { baseIds: [7, 8], sweptFiles: [], adoption } },
      { reason: 'it has ended', claimed: { baseIds: [7, 8], sweptFiles: [] } },
    ],
  },
  outcomes: {
    claim: ({ context }) => [
      { output: { baseIds: [7, 8], sweptFiles: [] } },
      ...((context.settings as AgentSettings).liveRestore
        ? [
            { output: { baseIds: [7, 8], sweptFiles: [], adoption } },
            { output: { baseIds: [], sweptFiles: [], isAnothers: true } },
          ]
        : []),
      { error: 'no base id is free' },
    ],
    supervisor: [
      { output: { ordered: true, attempts: [] } },
      { output: { ordered: false, attempts: ['epoch-0, serving: signal SIGSEGV'] } },
      { error: 'the supervisor failed' },
    ],
    'bootstrap-patches': [
      { output: { unusable: '' } },
      { output: { unusable: 'no such listener' } },
      { error: 'a fault' },
    ],
  },
};

const predecessorSamples: Samples = {
  events: {
    'successor.ready': [{ pid: 100 }],
    'successor.gone': [{ reason: 'it has ended' }],
    'link.failed': [{ reason: 'no space left on device' }],
    'succession.refuse': [{ reason: 'the agent ends' }],
  },
  outcomes: {
    write: [{ output: undefined }, { error: 'no space left on device' }],
    'give-up': [{ output: undefined }, { error: 'the record is gone' }],
    'take-back': [{ output: { baseIds: [7], sweptFiles: [], adoption } }, { error: 'another agent has the base ids' }],
  },
};

const successorSamples: Samples = {
  events: {
    'predecessor.refused': [{ reason: 'the agent ends' }],
    'predecessor.gone': [{ reason: 'it has ended' }],
  },
  outcomes: {
    claim: [{ output: { baseIds: [7], sweptFiles: [], adoption } }, { error: 'another agent has the base ids' }],
  },
};

const patchesSamples: Samples = {
  events: {
    'patches.answered': [
      { answer: { is: 'unpatched' } },
      { answer: { is: 'unusable', reason: 'no listener is known by this name' } },
      { answer: { is: 'unreachable', reason: 'away', isRefusal: false, retryAfterMs: 0, chance: 0.5 } },
    ],
  },
  outcomes: { ask: [{ error: 'a fault' }] },
};

const parts = { authorities: 'roots-1', bundle: '' };

const secretsSamples: Samples = {
  inputs: [identity, { ...identity, source: 'files of services' }, { ...identity, obtainsFirst: true }],
  events: {
    'sds.failed': [{ reason: 'address already in use' }],
    'sds.asked': [{ name: 'ROOTCA' }, { name: 'file-root:ca.pem' }, { name: 'nonsense' }],
    'sds.left': [{ name: 'ROOTCA' }, { name: 'file-root:ca.pem' }],
    'sds.acknowledged': [{ name: 'ROOTCA', version: 'roots-1' }],
    'sds.rejected': [{ name: 'ROOTCA', version: 'roots-1', reason: 'no certificate' }],
    'secret.obtained': [
      {
        ...{ name: 'default', version: 'certificate-1', authorities: 'roots-1', root: 'root-1' },
        ...{ serialNumber: '4A', parts, endsAtMs: 1 },
      },
      { name: 'ROOTCA', version: 'roots-1', authorities: '', root: '', serialNumber: '', parts, endsAtMs: null },
    ],
    'secret.lacking': [{ name: 'default', reason: 'the authority does not answer', attempts: 1, pauseMs: 500 }],
    'secret.ended': [{ name: 'default' }],
    'trust-bundle.received': [{ roots: [], hash: 'bundle-1', members: [], tainted: [] }],
    'output.failed': [{ reason: 'no space left on device' }],
  },
  outcomes: { look: [{ output: 'nobody' }, { output: 'a server' }, { output: 'another agent' }, { error: 'a fault' }] },
  // Of the secrets, the roots: what certificates wait for.
  relevant: ({ held, parts: made, heldBack, failures }) => [
    failures,
    heldBack,
    (made as typeof parts).authorities,
    (held as HeldSecret[])
      .filter(({ name }) => name === 'ROOTCA')
      .map((roots) => [roots.version, roots.parts.authorities, isTaken(roots)]),
  ],
};

const secretInput = {
  name: 'default',
  source: 'authority',
  directory: '',
  number: 0,
  grace: identity.grace,
  parts: { authorities: '', bundle: '' },
} as const;
const answered = { atMs: 10_000, draw: 0.5 };

const secretSamples: Samples = {
  inputs: [
    secretInput,
    { ...secretInput, name: 'ROOTCA', source: 'roots' },
    { ...secretInput, source: 'files', directory: 'certs' },
  ],
  events: {
    'secret.refresh': [{ parts }],
    'secret.taint': [{ roots: ['root-1'] }, { roots: [] }],
    'files.changed': [{ path: 'certs/cert-chain.pem' }],
  },
  outcomes: {
    obtain: [
      {
        output: {
          ...answered,
          outcome: 'obtained',
          version: 'one',
          authorities: 'roots-1',
          root: 'root-1',
          serialNumber: '4A',
          endsAtMs: 20_000,
        },
      },
      {
        output: {
          ...answered,
          ...{ outcome: 'obtained', version: 'one', authorities: '', root: '', serialNumber: '', endsAtMs: null },
        },
      },
      { output: { ...answered, outcome: 'refused', reason: 'it does not answer', unknown: false, pushbackMs: 0 } },
      { output: { ...answered, outcome: 'refused', reason: 'the token has ended', unknown: true, pushbackMs: 0 } },
      { output: { atMs: 30_000, draw: 0.5, outcome: 'refused', reason: 'it is late', unknown: false, pushbackMs: 0 } },
      { error: 'a fault' },
    ],
    clock: [{ output: { atMs: 11_000 } }, { output: { atMs: 16_000 } }, { error: 'a fault' }],
    step: [{ output: undefined }, { error: 'a fault' }],
  },
  relevant: ({ version, endsAtMs, shown, parts: made, tainted }) => [version, endsAtMs, shown, made, tainted],
};

/** In the order in which a person meets them. */
export const ownMachines: readonly OwnMachine[] = [
  {
    name: 'agent',
    file: 'machines/agent/agent.machine.ts',
    export: 'agentMachine',
    samples: agentSamples,
    load: async () => (await import('../../../machines/agent/agent.machine.ts')).agentMachine,
  },
  {
    name: 'predecessor',
    file: 'machines/agent/replacement/predecessor.machine.ts',
    export: 'predecessorMachine',
    samples: predecessorSamples,
    load: async () => (await import('../../../machines/agent/replacement/predecessor.machine.ts')).predecessorMachine,
  },
  {
    name: 'successor',
    file: 'machines/agent/replacement/successor.machine.ts',
    export: 'successorMachine',
    samples: successorSamples,
    load: async () => (await import('../../../machines/agent/replacement/successor.machine.ts')).successorMachine,
  },
  {
    name: 'launcher',
    file: 'machines/agent/replacement/launcher.machine.ts',
    export: 'launcherMachine',
    samples: { events: { 'agent.ended': [{ how: 'in order' }, { how: 'gave way' }, { how: 'killed' }] } },
    load: async () => (await import('../../../machines/agent/replacement/launcher.machine.ts')).launcherMachine,
  },
  {
    name: 'stand-in',
    file: 'machines/agent/replacement/stand-in.machine.ts',
    export: 'standInMachine',
    samples: {},
    load: async () => (await import('../../../machines/agent/replacement/stand-in.machine.ts')).standInMachine,
  },
  {
    name: 'bootstrap-patches',
    file: 'machines/agent/bootstrap/bootstrap-patches.machine.ts',
    export: 'bootstrapPatchesMachine',
    samples: patchesSamples,
    load: async () =>
      (await import('../../../machines/agent/bootstrap/bootstrap-patches.machine.ts')).bootstrapPatchesMachine,
  },
  {
    name: 'supervisor',
    file: 'machines/agent/envoy/supervisor.machine.ts',
    export: 'supervisorMachine',
    samples: supervisorSamples,
    load: async () => (await import('../../../machines/agent/envoy/supervisor.machine.ts')).supervisorMachine,
  },
  {
    name: 'restart',
    file: 'machines/agent/envoy/restart.machine.ts',
    export: 'restartMachine',
    samples: restartSamples,
    load: async () => (await import('../../../machines/agent/envoy/restart.machine.ts')).restartMachine,
  },
  {
    name: 'shutdown',
    file: 'machines/agent/envoy/shutdown.machine.ts',
    export: 'shutdownMachine',
    samples: shutdownSamples,
    load: async () => (await import('../../../machines/agent/envoy/shutdown.machine.ts')).shutdownMachine,
  },
  {
    name: 'epoch',
    file: 'machines/agent/envoy/epoch.machine.ts',
    export: 'epochMachine',
    samples: epochSamples,
    load: async () => (await import('../../../machines/agent/envoy/epoch.machine.ts')).epochMachine,
  },
  {
    name: 'cert-watcher',
    file: 'machines/agent/files/cert-watcher.machine.ts',
    export: 'certWatcherMachine',
    samples: certWatcherSamples,
    load: async () => (await import('../../../machines/agent/files/cert-watcher.machine.ts')).certWatcherMachine,
  },
  {
    name: 'directory-watch',
    file: 'machines/agent/files/directory-watch.machine.ts',
    export: 'directoryWatchMachine',
    samples: directorySamples,
    load: async () => (await import('../../../machines/agent/files/directory-watch.machine.ts')).directoryWatchMachine,
  },
  {
    name: 'secrets',
    file: 'machines/agent/secrets/secrets.machine.ts',
    export: 'secretsMachine',
    samples: secretsSamples,
    load: async () => (await import('../../../machines/agent/secrets/secrets.machine.ts')).secretsMachine,
  },
  {
    name: 'secret',
    file: 'machines/agent/secrets/secret.machine.ts',
    export: 'secretMachine',
    samples: secretSamples,
    load: async () => (await import('../../../machines/agent/secrets/secret.machine.ts')).secretMachine,
  },
  {
    name: 'start-limiter',
    file: 'machines/agent/envoy/start-limiter.machine.ts',
    export: 'startLimiterMachine',
    samples: { input: { burst: 2, refillMs: 1_000 } },
    load: async () => (await import('../../../machines/agent/envoy/start-limiter.machine.ts')).startLimiterMachine,
  },
  {
    name: 'status',
    file: 'machines/agent/status/status.machine.ts',
    export: 'statusMachine',
    samples: statusSamples,
    load: async () => (await import('../../../machines/agent/status/status.machine.ts')).statusMachine,
  },
  {
    name: 'xds-proxy',
    file: 'machines/agent/xds/xds-proxy.machine.ts',
    export: 'xdsProxyMachine',
    samples: xdsProxySamples,
    load: async () => (await import('../../../machines/agent/xds/xds-proxy.machine.ts')).xdsProxyMachine,
  },
  {
    name: 'xds-stream',
    file: 'machines/agent/xds/xds-stream.machine.ts',
    export: 'xdsStreamMachine',
    samples: xdsStreamSamples,
    load: async () => (await import('../../../machines/agent/xds/xds-stream.machine.ts')).xdsStreamMachine,
  },
];
