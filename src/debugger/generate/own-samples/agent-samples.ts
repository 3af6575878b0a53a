import type { Adoption } from '../../../../machines/agent/envoy/adoption.ts';
import type { AgentSettings } from '../../../../machines/agent/settings.ts';
import type { Samples } from '../samples.ts';
import { settings } from './envoy-samples.ts';
import { identity } from './xds-samples.ts';

export const statusSamples: Samples = {
  inputs: [
    { port: 15_020, hasEnvoy: true, awaitsNames: false, awaitsApplication: false, awaitsGrpcBootstrap: false },
    { port: 15_020, hasEnvoy: true, awaitsNames: false, awaitsApplication: true, awaitsGrpcBootstrap: false },
    { port: 15_020, hasEnvoy: true, awaitsNames: true, awaitsApplication: false, awaitsGrpcBootstrap: false },
    { port: 15_020, hasEnvoy: false, awaitsNames: true, awaitsApplication: false, awaitsGrpcBootstrap: false },
    { port: 15_020, hasEnvoy: false, awaitsNames: false, awaitsApplication: false, awaitsGrpcBootstrap: false },
    { port: 15_020, hasEnvoy: false, awaitsNames: false, awaitsApplication: false, awaitsGrpcBootstrap: true },
    { port: 0, hasEnvoy: true, awaitsNames: false, awaitsApplication: false, awaitsGrpcBootstrap: false },
  ],
  events: {
    'http.listening': [{ port: 15_020 }],
    'http.failed': [{ reason: 'address already in use' }],
    'readiness.requested': [{ request: 1 }],
    'drain.ordered': [{ reason: '' }],
    'envoy.responded': [
      { request: 1, by: 'admin', live: true, detail: 'LIVE', unserved: '' },
      { request: 1, by: 'admin', live: true, detail: 'LIVE', unserved: 'no inbound listener for port 8080' },
      { request: 1, by: 'admin', live: false, detail: 'DRAINING', unserved: '' },
      { request: 1, by: 'port', live: true, detail: 'port 15021 answers', unserved: '' },
    ],
    'listeners.checked': [{ listeners: [] }, { listeners: [{ name: 'tls', reason: 'no certificate' }] }],
    'serving.began': [{ name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 100 }],
    'serving.ended': [{ reason: 'Envoy ended' }],
    'handover.began': [{ name: 'epoch-1' }],
    'grpc-bootstrap.written': [{ file: './etc/istio/proxy/grpc-bootstrap.json' }],
  },
};

const adoption: Adoption = {
  desired: { digest: 'digest-1', orders: 0, binary: 'first' },
  epochs: [],
  recovery: 'none',
  provenDigest: 'digest-1',
  provenBinary: 'first',
};

export const agentSamples: Samples = {
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
      { error: 'no free base ID' },
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

export const predecessorSamples: Samples = {
  events: {
    'successor.ready': [{ pid: 100 }],
    'successor.lost': [{ reason: 'it has ended' }],
    'link.failed': [{ reason: 'no space left on device' }],
    'succession.refuse': [{ reason: 'the agent ends' }],
  },
  outcomes: {
    write: [{ output: undefined }, { error: 'no space left on device' }],
    'give-up': [{ output: undefined }, { error: 'the record was removed' }],
    'take-back': [{ output: { baseIds: [7], sweptFiles: [], adoption } }, { error: 'another agent has the base ids' }],
  },
};

export const successorSamples: Samples = {
  events: {
    'predecessor.refused': [{ reason: 'the agent ends' }],
    'predecessor.lost': [{ reason: 'it has ended' }],
  },
  outcomes: {
    claim: [{ output: { baseIds: [7], sweptFiles: [], adoption } }, { error: 'another agent has the base ids' }],
  },
};

export const patchesSamples: Samples = {
  events: {
    'patches.completed': [
      { result: { is: 'unpatched' } },
      { result: { is: 'unusable', reason: 'no listener is known by this name' } },
      { result: { is: 'unreachable', reason: 'away', isRefusal: false, retryAfterMs: 0, chance: 0.5 } },
    ],
  },
  outcomes: { request: [{ error: 'a fault' }] },
};
