/** What of an agent is seen over time: a lane for each epoch, and what people look for in its life. */
import type { MarkRule, Timeline } from '../timeline.ts';

/** An actor that is looked at in its chart, and has no lane. */
export const noLane: Timeline = { lane: 'none' };

const failed = (event: string): MarkRule => ({ event, kind: 'failure', text: '{type}: {reason}' });

export const agentTimeline: Timeline = {
  lane: 'none',
  lanes: [{ name: 'program', title: 'restarts, signals' }],
  marks: [
    { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
    { event: 'quit.requested', kind: 'signal', text: 'POST /quitquitquit' },
    failed('http.failed'),
    failed('status.failed'),
  ],
};

export const dnsTimeline: Timeline = {
  lane: 'none',
  marks: [failed('dns-port.failed'), failed('dns.failed')],
};

export const certWatcherTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'config.changed', kind: 'change', text: 'Certificates or configuration changed', unlessSame: 'digest' },
    {
      event: 'config.rejected',
      kind: 'rejected',
      text: 'What is configured would not do: {reason|problems.0.message}',
    },
  ],
};

export const binaryWatcherTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'binary.changed', kind: 'change', text: 'Another Envoy is to run: {description}' },
    { event: 'binary.rejected', kind: 'rejected', text: 'The Envoy at the path would not do: {reason}' },
  ],
};

export const secretsTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'secret.obtained', kind: 'change', text: '{name} was obtained', unlessSame: 'version' },
    { event: 'secret.lacking', kind: 'failure', text: '{name} could not be obtained: {reason}' },
    { event: 'secret.ended', kind: 'failure', text: 'The certificate of {name} has ended' },
    { event: 'sds.rejected', kind: 'rejected', text: 'Envoy refused {name}: {reason}' },
    failed('sds.failed'),
    failed('output.failed'),
  ],
};

export const supervisorTimeline: Timeline = {
  lane: 'none',
  marks: [
    {
      event: 'restart.decided',
      above: { attempt: 1 },
      kind: 'retry',
      text: 'Try {attempt}, {how} of {name}: {reason}',
    },
    { event: 'restart.decided', kind: 'restart', text: 'Decided: {how} of {name}: {reason}' },
    { event: 'epoch.failed', lane: '{name}', kind: 'failure', text: '{name} failed while {during}: {reason}' },
    { event: 'binary.withdrawn', kind: 'failure', text: 'The new Envoy was taken back: {reason}' },
    { timer: 'backoff', kind: 'retry', text: 'The pause after a failure is over: another try' },
    {
      items: '/epochs',
      when: { doomed: true },
      lane: '{name}',
      kind: 'failure',
      text: '{name} is doomed: its parent died before its time',
    },
  ],
};

export const epochTimeline: Timeline = {
  lane: 'each',
  // An Envoy says who it is to its control plane, and is not live before that one has said what to do.
  links: [
    { event: 'xstate.done.actor.prepare', side: 'is', key: '{output.node}' },
    { event: 'process.spawned', side: 'sends', key: 'node {identity}', text: 'xds.connect' },
    { event: 'probe.passed', side: 'receives', key: 'configuration of {identity}', text: 'xds.configured' },
  ],
};

export const xdsStreamTimeline: Timeline = {
  lane: 'none',
  marks: [{ event: 'resources.rejected', kind: 'rejected', text: 'Envoy rejects {typeUrl}: {reason}' }],
  // Nonces of pilot-discovery are its own for ever.
  links: [
    { event: 'response.passed', side: 'receives', key: 'push {nonce}', text: 'xds.push' },
    { event: 'request.passed', side: 'sends', key: 'answer to {nonce}', text: 'xds.answer' },
  ],
};
