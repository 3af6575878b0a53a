import type { Samples } from '../samples.ts';

export const identity = {
  source: 'authority',
  reason: 'a token',
  socket: 'sds',
  certificateDirectory: '',
  rootDirectory: '',
  grace: { ratio: 0.5, jitter: 0.01 },
  writesOutput: false,
} as const;

const xdsFailures = { count: 0, isRefusal: false, retryAfterMs: 0, credential: 'token' };

export const xdsProxySamples: Samples = {
  inputs: [
    { socket: '/etc/istio/proxy/XDS', hasSecrets: true, probe: null, proxyless: false },
    { socket: '/etc/istio/proxy/XDS', hasSecrets: false, probe: null, proxyless: false },
    { socket: '', hasSecrets: false, probe: null, proxyless: false },
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
  // Omits the number of streams that may be opened without a delay, and the number of failures.
  relevant: ({ streams, hasSecrets }) => [(streams as readonly object[]).length > 0, hasSecrets],
};

export const xdsStreamSamples: Samples = {
  inputs: [
    { stream: 1, protocol: 'delta', chance: 0.5, certificate: '', health: null, failures: xdsFailures },
    { stream: 1, protocol: 'sotw', chance: 0.5, certificate: '', health: null, failures: { ...xdsFailures, count: 1 } },
  ],
  events: {
    'stream.supersede': [{ reason: 'a newer stream of the same Envoy has taken its place' }],
    'downstream.closed': [{ reason: 'Envoy closed it' }],
    'upstream.opened': [{ credential: 'the token' }],
    'upstream.unreachable': [{ reason: 'ECONNREFUSED', chance: 0.5 }],
    'upstream.lost': [
      { code: 'UNAVAILABLE', reason: 'the connection was closed', retryAfterMs: 0 },
      { code: 'UNAUTHENTICATED', reason: 'the token has ended', retryAfterMs: 0 },
    ],
    'downstream.invalid': [{ reason: 'no discovery request' }],
    'bundle.received': [{ roots: ['PEM'], hash: 'a', members: [], tainted: [] }],
    'trust-bundle.served': [{ hash: 'a' }, { hash: 'b' }],
    'trust-bundle.refused': [{ hash: 'a', reason: 'no' }],
    'certificate.report': [{ serialNumber: '4A' }],
    'health.report': [{ healthy: false, message: 'connection refused' }],
  },
  relevant: ({ bundle, failures }) => [bundle, (failures as typeof xdsFailures).count > 0],
};
