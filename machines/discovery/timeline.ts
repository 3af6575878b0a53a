import type { MarkRule, Timeline } from '../timeline.ts';

export const noLane: Timeline = { lane: 'none' };

const failureMark = (event: string): MarkRule => ({ event, kind: 'failure', text: '{type}: {reason}' });
const rejectionMark = (event: string): MarkRule => ({
  event,
  kind: 'rejected',
  text: 'New configuration rejected, old one kept: {reason|problems.0.message}',
});

export const discoveryTimeline: Timeline = {
  lane: 'none',
  lanes: [{ name: 'program' }, { name: 'sources' }, { name: 'pushes' }, { name: 'connections' }],
  marks: [
    { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
    failureMark('http.failed'),
    failureMark('ads.failed'),
  ],
};

export const pushTimeline: Timeline = {
  lane: 'none',
  work: [
    { child: 'context', lane: 'pushes', phase: 'building' },
    { child: 'endpoints', lane: 'pushes', phase: 'building' },
  ],
  marks: [
    failureMark('context.failed'),
    { event: 'push.request', lane: 'pushes', kind: 'request', text: 'Push requested by {from}' },
    {
      event: 'clients.push',
      when: { forced: true },
      lane: 'pushes',
      kind: 'push',
      text: 'Push of all configuration, version {version}',
    },
    {
      event: 'clients.push',
      lane: 'pushes',
      kind: 'push',
      text: 'Push of {configs:object}, version {version}',
    },
  ],
};

/** A source of configuration. Messages between its parts are not marks. */
const source = (...marks: readonly MarkRule[]): Timeline => ({
  lane: 'none',
  group: 'sources',
  marks: [...marks, { event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' }],
});

export const meshConfigTimeline = source(rejectionMark('settings.rejected'));
export const configControllerTimeline = source(
  {
    event: 'configs.changed',
    lane: 'sources',
    kind: 'change',
    text: '{changes:configuration object} changed',
  },
  rejectionMark('configs.rejected'),
  failureMark('configs.failed'),
);
export const serviceRegistryTimeline = source(failureMark('services.failed'));
export const jwksTimeline = source();
export const trustBundlesTimeline = source({
  event: 'trust-bundle.failed',
  kind: 'failure',
  text: 'Cannot fetch the trust bundle of {endpoint}: {reason}',
});

export const remoteClustersTimeline = source();

export const consulTimeline = source(
  { event: 'catalog.held', kind: 'rejected', text: 'Consul: response held back: {reason}' },
  { event: 'catalog.failed', kind: 'failure', text: 'Consul does not respond: {reason}' },
);

export const nameServerTimeline = source({
  event: 'names.failed',
  kind: 'failure',
  text: 'DNS server unavailable: {reason}',
});

export const webhookServerTimeline = source({
  event: 'webhooks.failed',
  kind: 'failure',
  text: 'Webhooks unavailable: {reason}',
});

export const gatewayNamesTimeline = source({
  event: 'gateway-name.failed',
  kind: 'failure',
  text: '{hostname} does not resolve: {reason}',
});

export const secretAccessTimeline = source({
  event: 'access.unavailable',
  kind: 'failure',
  text: 'Cannot check whether {account} may read Secrets: {reason}',
});

export const registrationsTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'registration.failed', kind: 'failure', text: 'Cannot write WorkloadEntry {entry}: {reason}' },
    { event: 'registration.rejected', kind: 'rejected', text: 'Registration of {entry} rejected: {reason}' },
  ],
};
/** No lane, because a replica that does not lead is not faulty. */
export const electionsTimeline: Timeline = { lane: 'none', group: 'elections' };
export const leaderTimeline: Timeline = {
  lane: 'none',
  group: 'elections',
  marks: [
    { event: 'leader.elected', kind: 'change', text: 'Elected leader of Lease {lease}' },
    { event: 'leader.lost', kind: 'departure', text: 'Lost leadership of Lease {lease}: {reason}' },
    { event: 'leader.failed', kind: 'failure', text: 'Lease {lease} unavailable: {reason}' },
    { event: 'duty.written', above: { failed: 0 }, kind: 'failure', text: '{lease}: {failed} writes failed: {reason}' },
  ],
};

export const apiServerTimeline = source({
  event: 'kind.failed',
  kind: 'failure',
  text: '{resource} unavailable: {reason}',
});

export const serverCertificateTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'certificate.changed', kind: 'change', text: 'New server certificate' },
    { event: 'certificate.rejected', kind: 'rejected', text: 'Server certificate rejected: {reason}' },
  ],
};

export const authorityTimeline: Timeline = {
  lane: 'none',
  marks: [
    failureMark('authority.failed'),
    { event: 'rotation.start', kind: 'request', text: 'Rotation of the root requested by {from}' },
    { event: 'rotation.taint', kind: 'request', text: 'Root marked as tainted by {from}' },
    { event: 'rotation.proceed', kind: 'request', text: 'Rotation forced by {from}, without waiting for all proxies' },
    { event: 'authority.changed', kind: 'change', text: 'Authority: {stage}, signed by {signer}' },
  ],
};
