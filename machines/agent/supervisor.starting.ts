import { and } from 'xstate';
import { supervisorSetup } from './supervisor.setup.ts';

/** The epoch that served is gone. */
export const servingLost = [
  'forgiveTries',
  'countFailure',
  'noteEnd',
  'forgetEpoch',
  { type: 'tellNotServing', params: { reason: 'Envoy ended' } },
] as const;

const notInTime = { target: '#supervisor.running.aborting', actions: 'countStartLimit' } as const;

/** Both go: neither may live on without the other. */
const withItsParent = { target: '#supervisor.running.aborting', actions: 'abortParentOfNewest' } as const;

/** The part of the supervisor's chart in which an Envoy is on its way to live. */
export const starting = supervisorSetup.createStateConfig({
  tags: 'starting',
  description: 'The newest epoch is on its way to live.',
  exit: 'reportRestart',
  initial: 'choosing',
  states: {
    choosing: {
      always: [
        { guard: 'someEpochServes', target: 'beside the serving epoch', actions: 'tellHandover' },
        { target: 'with nobody serving' },
      ],
    },
    'beside the serving epoch': {
      tags: 'beside the serving epoch',
      description: 'The old epoch serves until the new one is live, and goes on serving if it never is.',
      initial: 'in time',
      states: {
        'in time': {
          description: 'News are looked at when it is live, or when its time is over.',
          after: { startLimit: 'looking once more' },
        },
        'looking once more': {
          description: 'Its time is over. Since the last look it may have become live: then its parent serves no more.',
          entry: 'lookOnceMore',
          after: { lookLimit: notInTime },
          on: { 'epoch.not-live': { guard: 'ofNewest', ...notInTime } },
        },
      },
      on: {
        'epoch.failed': [
          {
            guard: and(['ofNewest', 'takesNoChild', 'hadProcess']),
            target: '#supervisor.running.recycling',
            actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded'],
          },
          {
            guard: and(['ofNewest', 'refusedByParent', 'repairWasTried']),
            target: '#supervisor.running.backing off',
            actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded', 'giveUpHotRestart'],
          },
          {
            guard: and(['ofNewest', 'refusedByParent']),
            target: '#supervisor.running.repairing',
            actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded'],
          },
          {
            guard: 'ofNewest',
            target: '#supervisor.running.backing off',
            actions: ['countFailure', 'forgetEpoch', 'tellHandoverEnded'],
          },
          { guard: and(['ofServing', 'newestNeedsNobody']), target: 'with nobody serving', actions: servingLost },
          { guard: 'ofServing', target: '#supervisor.running.aborting', actions: servingLost },
        ],
      },
    },
    'with nobody serving': {
      tags: 'with nobody serving',
      description: 'However long it takes: an Envoy that waits for the control plane is better than none.',
      initial: 'choosing',
      states: {
        choosing: {
          always: [{ guard: 'newestIsOutdated', target: 'outdated' }, { target: 'waiting' }],
        },
        waiting: {
          meta: { waitsFor: 'whatever Envoy waits for (epoch.waiting says what); news and orders call it off' },
          description: 'It has the newest configuration, or it needs a parent that will not wait for long.',
          on: {
            'config.changed': { guard: 'isNews', target: 'choosing', actions: ['desire', 'renewBudget'] },
            'supervisor.restart': { target: 'choosing', actions: ['demandRestart', 'renewBudget'] },
          },
        },
        outdated: {
          tags: 'outdated',
          description: 'Something newer is wanted. One that is about to be live is still better than a start anew.',
          after: { patience: 'looking once more' },
          on: {
            'config.changed': [
              { guard: 'bringsBack', target: 'waiting', actions: ['desire', 'renewBudget'] },
              { guard: 'isNews', actions: ['desire', 'renewBudget'] },
            ],
          },
        },
        'looking once more': {
          description: 'Since the last look it may have become live: then a hot restart follows, and nothing is lost.',
          entry: 'lookOnceMore',
          after: { lookLimit: '#supervisor.running.calling off' },
          on: { 'epoch.not-live': { guard: 'ofNewest', target: '#supervisor.running.calling off' } },
        },
        'waiting for a parent that hangs': {
          description: 'Who hangs answers nobody, and its child waits for ever, unless it has become live meanwhile.',
          entry: 'lookOnceMore',
          after: { lookLimit: withItsParent },
          on: { 'epoch.not-live': { guard: 'ofNewest', ...withItsParent } },
        },
      },
      on: {
        'epoch.failed': [
          {
            guard: 'ofNewest',
            target: '#supervisor.running.backing off',
            actions: ['countFailure', 'forgetEpoch'],
          },
          // A child whose parent is gone never becomes live.
          {
            guard: 'ofParentOfNewest',
            target: '#supervisor.running.aborting',
            actions: ['countFailure', 'forgetEpoch'],
          },
        ],
        'epoch.overdue': { guard: 'ofParentOfNewest', target: '.waiting for a parent that hangs' },
        'epoch.exited': {
          guard: 'ofParentOfNewest',
          target: '#supervisor.running.aborting',
          actions: ['countFailure', 'forgetEpoch'],
        },
      },
    },
  },
  on: {
    // Told for people: they are in the trace, and so in the log.
    'epoch.started': {},
    'epoch.waiting': {},
    // Nobody waits for it any more, or yet.
    'epoch.not-live': {},
    'epoch.live': {
      guard: 'ofNewest',
      target: 'deciding',
      actions: ['supersedeOthers', 'markLive', 'tellServing'],
    },
  },
});
