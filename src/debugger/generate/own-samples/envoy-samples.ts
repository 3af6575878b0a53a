import { type ClassifiedExit, parentFailures } from '../../../../machines/agent/envoy/supervisor-context.ts';
import { defaultSettings } from '../../../../machines/agent/settings.ts';
import type { Payload, SampledState, Samples } from '../samples.ts';

interface SampledEpoch {
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

interface DesiredState {
  readonly digest: string;
  readonly orders: number;
  readonly binary: string;
}

export const settings = { ...defaultSettings, watch: { ...defaultSettings.watch, directories: ['certs'] } };

const forEachEpoch =
  (...payloads: readonly Payload[]) =>
  ({ context }: SampledState): readonly Payload[] => {
    const contextEpochs = context.epochs as readonly SampledEpoch[];
    // If no epoch is known, the event is sent by an epoch that the supervisor has removed.
    const epochs = contextEpochs.length > 0 ? contextEpochs : [{ name: 'epoch-9', epoch: 9 }];
    return epochs.flatMap(({ name, epoch }) => payloads.map((payload) => ({ name, epoch, ...payload })));
  };

const supervisorInput = (change: Partial<typeof settings>) => ({
  baseIds: [7, 8],
  settings: { ...settings, retry: { ...settings.retry, budget: 1 }, ...change },
});

/** The supervisor raises these events to classify an exit, only after that exit. */
const raisedOnExit: Record<ClassifiedExit['type'], readonly Payload[]> = {
  'serving.failed': [],
  'serving.orphaned': [],
  'candidate.failed': [],
  'candidate.aborted': [],
  'candidate.orphaned': [],
  'base-id.blocked': [],
  'epoch.ended': [],
};

export const supervisorSamples: Samples = {
  inputs: [
    supervisorInput({}),
    supervisorInput({ hotRestart: false }),
    supervisorInput({ restartPolicy: 'exit' }),
    supervisorInput({ exitOnZeroActiveConnections: true }),
  ],
  events: {
    ...raisedOnExit,
    'config.changed': ({ context }) => {
      // The current digest and a different one; more digests add no behaviour.
      const currentDigest = (context.desired as DesiredState).digest;
      const otherConfiguration = { digest: currentDigest === 'digest-1' ? 'digest-2' : 'digest-1', files: 1 };
      return currentDigest === '' ? [otherConfiguration] : [otherConfiguration, { digest: currentDigest, files: 1 }];
    },
    'binary.changed': ({ value, context }) => {
      // A waiting start is granted immediately if a token is available, so this state needs no samples.
      if ((value as { running?: unknown }).running === 'rate limited') return [];
      const isFirst = (context.desired as DesiredState).binary === '';
      return [{ binary: isFirst ? 'second' : '', description: isFirst ? '1.40.0' : '1.39.3' }];
    },
    'binary.rejected': [{ reason: 'its hot restart version is 11.112' }],
    'config.rejected': [{ reason: 'tls.key is not the key of tls.crt' }],
    'supervisor.restart': [{ reason: 'SIGHUP' }],
    'supervisor.stop': [{ reason: 'SIGTERM' }],
    'child.abort': ({ context }) => {
      const epochs = context.epochs as readonly SampledEpoch[];
      if (epochs.some(({ phase }) => phase === 'live')) return [{ reason: 'not live in time' }];
      if (epochs.some(({ phase }) => phase === 'leaving')) return parentFailures.map((reason) => ({ reason }));
      // The reason only applies to a candidate that was started with an outdated configuration.
      const { digest, orders } = context.desired as DesiredState;
      const isCurrent = epochs.at(-1)?.digest === digest && epochs.at(-1)?.orders === orders;
      return isCurrent ? [] : [{ reason: 'something newer is wanted' }];
    },
    'epoch.started': forEachEpoch({ pid: 100, adminPort: 15_000 }),
    'epoch.live': forEachEpoch({ timeToLiveMs: 300, unseenMs: 50 }),
    'epoch.waiting': forEachEpoch({ reason: '503 INITIALIZING' }),
    'epoch.not-live': forEachEpoch({ reason: '503 INITIALIZING' }),
    'epoch.unkillable': forEachEpoch({ reason: 'SIGKILL has not ended it' }),
    'epoch.healthy': forEachEpoch({}),
    'epoch.drained': forEachEpoch({}),
    'epoch.drain-failed': forEachEpoch({ reason: 'no response' }),
    'epoch.overdue': forEachEpoch({}),
    'epoch.exited': forEachEpoch({ code: 0, signal: null }),
    'epoch.failed': forEachEpoch(
      { during: 'serving', code: null, signal: 'SIGSEGV', reason: 'signal SIGSEGV', refusedByParent: false },
      { during: 'initializing', code: 1, signal: null, reason: 'exit code 1', refusedByParent: true },
    ),
  },
  outcomes: {
    'start-limiter': [],
    // The machine `restart` ends only after the supervisor has recorded the outcome, which clears `context.restart`.
    restart: ({ context }) =>
      context.restart === undefined ? [{ output: { end: 'failed' } }, { output: { end: 'called off' } }] : [],
  },
  // Epochs are identified by position instead of number, configurations by whether they are the desired one.
  relevant: ({ epochs, desired, failures, recovery, restart, baseIds, provenBinary }) => [
    (epochs as readonly SampledEpoch[]).map(
      ({ name, epoch, baseId, adminPort, pid, digest, orders, binary, ...otherFields }) => ({
        ...otherFields,
        second: baseId === (baseIds as readonly number[])[1],
        wanted: digest === (desired as DesiredState).digest && orders === (desired as DesiredState).orders,
        other: binary !== (desired as DesiredState).binary,
      }),
    ),
    (desired as DesiredState).digest === '',
    (desired as DesiredState).binary === provenBinary,
    failures,
    recovery,
    restart !== undefined,
  ],
};

const restartInput = {
  isBesideServing: true,
  hasNoParent: false,
  isOutdated: false,
  startLimitMs: 20_000,
  outdatedLimitMs: 5_000,
};

export const restartSamples: Samples = {
  inputs: [
    restartInput,
    { ...restartInput, hasNoParent: true },
    { ...restartInput, isBesideServing: false, hasNoParent: true },
    { ...restartInput, isBesideServing: false, hasNoParent: true, isOutdated: true },
  ],
  events: { 'desired.changed': [{ isOutdated: true }, { isOutdated: false }] },
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

export const shutdownSamples: Samples = {
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
  outcomes: { count: [{ output: 0 }, { output: 3 }, { error: 'the admin interface does not respond' }] },
};

export const epochSamples: Samples = {
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
      { lingerMs: 60_000, isOrphaned: false },
      { lingerMs: 8_500, isOrphaned: true },
    ],
    'process.spawned': [{ pid: 100, startedAtMs: 0 }],
    'process.exited': [
      { code: null, signal: 'SIGSEGV', lastOutput: '', refusedByParent: false, outOfMemory: false },
      { code: 0, signal: null, lastOutput: '', refusedByParent: false, outOfMemory: false },
      {
        code: null,
        signal: 'SIGSEGV',
        lastOutput: '',
        refusedByParent: false,
        outOfMemory: false,
        tookOverWithinMs: 300,
      },
    ],
    'process.failed': [{ reason: 'spawn ENOENT' }],
    'probe.passed': [{ timeToLiveMs: 300, unseenMs: 50 }],
    'probe.waiting': [{ reason: '503 INITIALIZING' }],
    'probe.failed': [{ reason: '503 INITIALIZING' }],
    'probe.incomplete': [{ reason: 'LIVE without 1 refused listeners, tls: no certificate' }],
  },
  outcomes: {
    prepare: [
      { output: { configFile: 'envoy-rev0.json', adminPort: 15_000 } },
      { output: { outdated: 'the certificate files changed after they were checked' } },
      { output: { unwritable: '/etc/istio/proxy: EROFS: read-only file system' } },
      { output: { unreachable: '127.0.0.1:15010 (connection refused)' } },
      { error: 'Envoy refuses envoy-rev0.json' },
    ],
    drain: [{ output: undefined }, { error: 'the admin interface does not respond' }],
  },
};
