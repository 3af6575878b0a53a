import type { MarkRule, Timeline } from '../timeline.ts';

export const noLane: Timeline = { lane: 'none' };

const failureMark = (event: string): MarkRule => ({ event, kind: 'failure', text: '{type}: {reason}' });

export const agentTimeline: Timeline = {
  lane: 'none',
  lanes: [{ name: 'program', title: 'events' }],
  marks: [
    { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
    { event: 'quit.requested', kind: 'signal', text: 'POST /quitquitquit' },
    failureMark('http.failed'),
    failureMark('status.failed'),
  ],
};

export const dnsTimeline: Timeline = {
  lane: 'none',
  marks: [failureMark('dns-port.failed'), failureMark('dns.failed')],
};

export const accessLogsTimeline: Timeline = {
  lane: 'none',
  marks: [failureMark('access-logs.failed')],
};

export const grpcBootstrapTimeline: Timeline = {
  lane: 'none',
  marks: [failureMark('grpc-bootstrap.failed')],
};

export const certWatcherTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'config.changed', kind: 'change', text: 'Certificates or configuration changed', unlessSame: 'digest' },
    {
      event: 'config.rejected',
      kind: 'rejected',
      text: 'New configuration rejected, old one kept: {reason|problems.0.message}',
    },
  ],
};

export const binaryWatcherTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'binary.changed', kind: 'change', text: 'New Envoy binary: {description}' },
    { event: 'binary.rejected', kind: 'rejected', text: 'New Envoy binary rejected: {reason}' },
  ],
};

export const secretsTimeline: Timeline = {
  lane: 'none',
  marks: [
    { event: 'secret.obtained', kind: 'change', text: 'Certificate {name} obtained', unlessSame: 'version' },
    { event: 'secret.unavailable', kind: 'failure', text: 'Certificate {name} unavailable: {reason}' },
    { event: 'secret.expired', kind: 'failure', text: 'Certificate {name} expired' },
    { event: 'sds.rejected', kind: 'rejected', text: 'Envoy rejected certificate {name}: {reason}' },
    failureMark('sds.failed'),
    failureMark('output.failed'),
  ],
};

export const supervisorTimeline: Timeline = {
  lane: 'none',
  marks: [
    {
      event: 'restart.decided',
      above: { attempt: 1 },
      kind: 'retry',
      text: 'Attempt {attempt}, {how} of {name}: {reason}',
    },
    { event: 'restart.decided', kind: 'restart', text: '{how} of {name}: {reason}' },
    { event: 'epoch.failed', lane: '{name}', kind: 'failure', text: '{name} failed while {during}: {reason}' },
    { event: 'binary.withdrawn', kind: 'failure', text: 'New Envoy binary reverted: {reason}' },
    { timer: 'backoff', kind: 'retry', text: 'Retry after backoff' },
    {
      items: '/epochs',
      when: { doomed: true },
      lane: '{name}',
      kind: 'failure',
      text: '{name} will abort: its parent exited too early',
    },
  ],
};

export const epochTimeline: Timeline = {
  lane: 'each',
  // Envoy sends its node ID to the control plane, and is live when it has received its configuration.
  links: [
    { event: 'xstate.done.actor.prepare', side: 'is', key: '{output.node}' },
    { event: 'process.spawned', side: 'sends', key: 'node {identity}', text: 'xds.connect' },
    { event: 'probe.passed', side: 'receives', key: 'configuration of {identity}', text: 'xds.configured' },
  ],
};

export const wasmModuleTimeline: Timeline = {
  lane: 'none',
  marks: [{ event: 'module.failed', kind: 'failure', text: 'Wasm module not fetched: {reason}' }],
};

export const xdsStreamTimeline: Timeline = {
  lane: 'none',
  marks: [{ event: 'resources.rejected', kind: 'rejected', text: 'Envoy rejected {typeUrl}: {reason}' }],
  // pilot-discovery never reuses a nonce.
  links: [
    { event: 'response.forwarded', side: 'receives', key: 'push {nonce}', text: 'xds.push' },
    { event: 'request.forwarded', side: 'sends', key: 'answer to {nonce}', text: 'xds.answer' },
  ],
};
