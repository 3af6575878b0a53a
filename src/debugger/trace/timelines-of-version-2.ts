/**
 * What was seen over time of the programs that wrote traces of version 2, by the ids of their machines. It stays as it is,
 * whatever those machines say of themselves today.
 */
import type { Timeline } from '../../../machines/timeline.ts';

const none: Timeline = { lane: 'none' };

export const timelinesOfVersion2: ReadonlyMap<string, Timeline> = new Map<string, Timeline>([
  ['directory-watch', none],
  ['restart', none],
  ['shutdown', none],
  ['start-limiter', none],
  ['status', none],
  ['push-queue', none],
  ['registry', none],
  ['config-source', none],
  ['key-set', none],
  [
    'agent',
    {
      lane: 'none',
      lanes: [{ name: 'program', title: 'restarts, signals' }],
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
          text: 'Try {attempt}, {how} of {name}: {reason}',
        },
        { event: 'restart.decided', kind: 'restart', text: 'Decided: {how} of {name}: {reason}' },
        { event: 'epoch.failed', lane: '{name}', kind: 'failure', text: '{name} failed while {during}: {reason}' },
        { timer: 'backoff', kind: 'retry', text: 'The pause after a failure is over: another try' },
        {
          items: '/epochs',
          when: { doomed: true },
          lane: '{name}',
          kind: 'failure',
          text: '{name} is doomed: its parent died before its time',
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
          text: 'What is configured would not do: {reason|problems.0.message}',
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
          text: 'What is configured would not do: {reason|problems.0.message}',
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
          text: 'What is configured would not do: {reason|problems.0.message}',
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
