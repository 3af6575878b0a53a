/** What of a control plane is seen over time: what changes, what is pushed, to how many. */
import type { MarkRule, Timeline } from '../timeline.ts';

/** An actor that is looked at in its chart, and has no lane. */
export const noLane: Timeline = { lane: 'none' };

const failed = (event: string): MarkRule => ({ event, kind: 'failure', text: '{type}: {reason}' });
const rejected = (event: string): MarkRule => ({
  event,
  kind: 'rejected',
  text: 'What is configured would not do: {reason|problems.0.message}',
});

export const discoveryTimeline: Timeline = {
  lane: 'none',
  lanes: [{ name: 'program' }, { name: 'sources' }, { name: 'pushes' }, { name: 'connections' }],
  marks: [
    { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
    failed('http.failed'),
    failed('ads.failed'),
  ],
};

export const pushTimeline: Timeline = {
  lane: 'none',
  work: [
    { child: 'context', lane: 'pushes', phase: 'building' },
    { child: 'endpoints', lane: 'pushes', phase: 'building' },
  ],
  marks: [
    failed('context.failed'),
    { event: 'push.request', lane: 'pushes', kind: 'request', text: '{from} asks for a push' },
    {
      event: 'clients.push',
      when: { forced: true },
      lane: 'pushes',
      kind: 'push',
      text: 'Pushed to the clients: everything, version {version}',
    },
    {
      event: 'clients.push',
      lane: 'pushes',
      kind: 'push',
      text: 'Pushed to the clients: {configs:object}, version {version}',
    },
  ],
};

/** Where configuration comes from. What its parts tell each other is no change that a person looks for. */
const source = (...marks: readonly MarkRule[]): Timeline => ({
  lane: 'none',
  group: 'sources',
  marks: [...marks, { event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' }],
});

export const meshConfigTimeline = source(rejected('settings.rejected'));
export const configControllerTimeline = source(
  {
    event: 'configs.changed',
    lane: 'sources',
    kind: 'change',
    text: '{changes:configuration object} changed',
  },
  rejected('configs.rejected'),
  failed('configs.failed'),
);
export const serviceRegistryTimeline = source(failed('services.failed'));
export const jwksTimeline = source();
export const trustBundlesTimeline = source({
  event: 'trust-bundle.failed',
  kind: 'failure',
  text: 'The roots of {endpoint} cannot be fetched: {reason}',
});

export const remoteClustersTimeline = source();

export const gatewayNamesTimeline = source({
  event: 'gateway-name.failed',
  kind: 'failure',
  text: '{hostname} does not resolve: {reason}',
});

export const secretAccessTimeline = source({
  event: 'access.unanswered',
  kind: 'failure',
  text: 'Whether {account} may read Secrets is not known: {reason}',
});

export const registrationsTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'registration.failed', kind: 'failure', text: 'The entry {entry} cannot be written: {reason}' },
    { event: 'registration.rejected', kind: 'rejected', text: 'The workload {entry} cannot register: {reason}' },
  ],
};
/** That a replica leads is a phase of it; that it does not is none of its faults. */
export const electionsTimeline: Timeline = { lane: 'none', group: 'elections' };
export const leaderTimeline: Timeline = {
  lane: 'none',
  group: 'elections',
  marks: [
    { event: 'leader.elected', kind: 'change', text: 'Leads, by the Lease {lease}' },
    { event: 'leader.lost', kind: 'departure', text: 'Leads no more ({lease}): {reason}' },
    { event: 'leader.failed', kind: 'failure', text: 'The Lease {lease} cannot be had: {reason}' },
    { event: 'duty.written', above: { failed: 0 }, kind: 'failure', text: '{lease}: {failed} writes failed: {reason}' },
  ],
};

export const apiServerTimeline = source({
  event: 'kind.failed',
  kind: 'failure',
  text: '{resource} cannot be had: {reason}',
});

export const serverCertificateTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'certificate.changed', kind: 'change', text: 'The port with TLS shows another certificate' },
    { event: 'certificate.rejected', kind: 'rejected', text: 'The port with TLS cannot show it: {reason}' },
  ],
};

export const authorityTimeline: Timeline = {
  lane: 'none',
  marks: [
    failed('authority.failed'),
    { event: 'rotation.order', kind: 'request', text: '{from} asks for another root' },
    { event: 'rotation.taint', kind: 'request', text: '{from} says that the root is tainted' },
    { event: 'rotation.force', kind: 'request', text: '{from} leaves behind those who are waited for' },
    { event: 'authority.changed', kind: 'change', text: 'The authority is {stage}, signed by {signer}' },
  ],
};
