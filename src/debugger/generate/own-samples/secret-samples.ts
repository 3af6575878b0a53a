import { type HeldSecret, isAcknowledged } from '../../../../machines/agent/secrets/held-secrets.ts';
import type { Samples } from '../samples.ts';
import { identity } from './xds-samples.ts';

const bundles = { authorities: 'roots-1', bundle: '' };

export const secretsSamples: Samples = {
  inputs: [identity, { ...identity, source: 'files of services' }, { ...identity, obtainsFirst: true }],
  events: {
    'sds.failed': [{ reason: 'address already in use' }],
    'sds.subscribed': [{ name: 'ROOTCA' }, { name: 'file-root:ca.pem' }, { name: 'nonsense' }],
    'sds.unsubscribed': [{ name: 'ROOTCA' }, { name: 'file-root:ca.pem' }],
    'sds.acknowledged': [{ name: 'ROOTCA', version: 'roots-1' }],
    'sds.rejected': [{ name: 'ROOTCA', version: 'roots-1', reason: 'no certificate' }],
    'secret.obtained': [
      {
        ...{ name: 'default', version: 'certificate-1', authorities: 'roots-1', root: 'root-1' },
        ...{ serialNumber: '4A', parts: bundles, endsAtMs: 1 },
      },
      {
        name: 'ROOTCA',
        version: 'roots-1',
        authorities: '',
        root: '',
        serialNumber: '',
        parts: bundles,
        endsAtMs: null,
      },
    ],
    'secret.unavailable': [{ name: 'default', reason: 'the authority does not respond', attempts: 1, pauseMs: 500 }],
    'secret.expired': [{ name: 'default' }],
    'trust-bundle.received': [{ roots: [], hash: 'bundle-1', members: [], tainted: [] }],
    // Only before the first secret: the region that writes files is independent and would otherwise double the number of states.
    'output.failed': ({ context: { held, failures } }) =>
      (held as HeldSecret[]).length === 0 && failures === 0 ? [{ reason: 'no space left on device' }] : [],
  },
  outcomes: {
    probe: [{ output: 'nobody' }, { output: 'a server' }, { output: 'another agent' }, { error: 'a fault' }],
  },
  // Among the secrets, only roots matter, because certificates wait for them.
  relevant: ({ held, parts: secretParts, deferredCertificate, failures }) => [
    failures,
    deferredCertificate,
    (secretParts as typeof bundles).authorities,
    (held as HeldSecret[])
      .filter(({ name }) => name === 'ROOTCA')
      .map((roots) => [roots.version, roots.parts.authorities, isAcknowledged(roots)]),
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

const timeAndDraw = { atMs: 10_000, draw: 0.5 };

export const secretSamples: Samples = {
  inputs: [
    secretInput,
    { ...secretInput, name: 'ROOTCA', source: 'roots' },
    { ...secretInput, source: 'files', directory: 'certs' },
  ],
  events: {
    'secret.refresh': [{ parts: bundles }],
    'secret.taint': [{ roots: ['root-1'] }, { roots: [] }],
    'files.changed': [{ path: 'certs/cert-chain.pem' }],
  },
  outcomes: {
    obtain: [
      {
        output: {
          ...timeAndDraw,
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
          ...timeAndDraw,
          ...{ outcome: 'obtained', version: 'one', authorities: '', root: '', serialNumber: '', endsAtMs: null },
        },
      },
      { output: { ...timeAndDraw, outcome: 'refused', reason: 'it does not respond', unknown: false, pushbackMs: 0 } },
      { output: { ...timeAndDraw, outcome: 'refused', reason: 'the token has ended', unknown: true, pushbackMs: 0 } },
      { output: { atMs: 30_000, draw: 0.5, outcome: 'refused', reason: 'it is late', unknown: false, pushbackMs: 0 } },
      { error: 'a fault' },
    ],
    clock: [{ output: { atMs: 11_000 } }, { output: { atMs: 16_000 } }, { error: 'a fault' }],
    step: [{ output: undefined }, { error: 'a fault' }],
  },
  relevant: ({ version, endsAtMs, credential, parts: secretParts, tainted }) => [
    version,
    endsAtMs,
    credential,
    secretParts,
    tainted,
  ],
};
