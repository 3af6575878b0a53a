/** Timelines for traces of version 2. They do not change with the timelines of the current machines. */
import type { Timeline } from '../../../../machines/timeline.ts';

const noTimeline: Timeline = { lane: 'none' };

export const timelinesOfVersion2: ReadonlyMap<string, Timeline> = new Map<string, Timeline>([
  ['directory-watch', noTimeline],
  ['restart', noTimeline],
  ['shutdown', noTimeline],
  ['start-limiter', noTimeline],
  ['status', noTimeline],
  ['push-queue', noTimeline],
  ['registry', noTimeline],
  ['config-source', noTimeline],
  ['key-set', noTimeline],
  [
    'agent',
    {
      lane: 'none',
      lanes: [{ name: 'program', title: 'events' }],
      marks: [
        { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
        { event: 'quit.requested', kind: 'signal', text: 'POST /quitquitquit' },
        { event: 'http.failed', kind: 'failure', text: '{type}: {reason}' },
        { event: 'status.failed', kind: 'failure', text: '{type}: {reason}' },
      ],
    },
  ],
  [
    'supervisor',
    {
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
        { timer: 'backoff', kind: 'retry', text: 'Retry after backoff' },
        {
          items: '/epochs',
          when: { doomed: true },
          lane: '{name}',
          kind: 'failure',
          text: '{name} will abort: its parent exited too early',
        },
      ],
    },
  ],
  ['epoch', { lane: 'each' }],
  [
    'cert-watcher',
    {
      lane: 'none',
      marks: [
        {
          event: 'config.changed',
          kind: 'change',
          text: 'Certificates or configuration changed',
          unlessSame: 'digest',
        },
        {
          event: 'config.rejected',
          kind: 'rejected',
          text: 'New configuration rejected, old one kept: {reason|problems.0.message}',
        },
      ],
    },
  ],
  [
    'discovery',
    {
      lane: 'none',
      lanes: [{ name: 'program' }, { name: 'sources' }, { name: 'pushes' }, { name: 'connections' }],
      marks: [
        { event: 'signal.received', kind: 'signal', text: 'Signal {signal}' },
        { event: 'http.failed', kind: 'failure', text: '{type}: {reason}' },
        { event: 'ads.failed', kind: 'failure', text: '{type}: {reason}' },
      ],
    },
  ],
  ['ads-connection', { lane: { count: 'connections' } }],
  [
    'push',
    {
      lane: 'none',
      work: [
        { child: 'context', lane: 'pushes', phase: 'building' },
        { child: 'endpoints', lane: 'pushes', phase: 'building' },
      ],
      marks: [
        { event: 'context.failed', kind: 'failure', text: '{type}: {reason}' },
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
    },
  ],
  [
    'mesh-config',
    {
      lane: 'none',
      group: 'sources',
      marks: [
        {
          event: 'settings.rejected',
          kind: 'rejected',
          text: 'New configuration rejected, old one kept: {reason|problems.0.message}',
        },
        { event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' },
      ],
    },
  ],
  [
    'config-controller',
    {
      lane: 'none',
      group: 'sources',
      marks: [
        { event: 'configs.changed', lane: 'sources', kind: 'change', text: '{changes:configuration object} changed' },
        {
          event: 'config.rejected',
          kind: 'rejected',
          text: 'New configuration rejected, old one kept: {reason|problems.0.message}',
        },
        { event: 'configs.failed', kind: 'failure', text: '{type}: {reason}' },
        { event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' },
      ],
    },
  ],
  [
    'service-registry',
    {
      lane: 'none',
      group: 'sources',
      marks: [
        { event: 'services.failed', kind: 'failure', text: '{type}: {reason}' },
        { event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' },
      ],
    },
  ],
  [
    'jwks',
    {
      lane: 'none',
      group: 'sources',
      marks: [{ event: '*', lane: 'sources', kind: 'change', text: '{from}: {type}' }],
    },
  ],
]);
