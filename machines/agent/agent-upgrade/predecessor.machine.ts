import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { LinkOrder, LinkReport, SuccessionBegin, SuccessionRefuse } from '../succession-protocol.ts';
import { noLane } from '../timeline.ts';

/** A record of some kilobytes is written to a slow disk within this time. */
const writeLimitMs = 1_000;
const releaseLimitMs = 250;
/** Ten times the time that a newer agent needs. Together with the resumption, the time without an agent in control stays below 2 s. */
const takeoverLimitMs = 1_250;
/** A resumed process handles expired timers before a report that has already arrived. */
const finalReportLimitMs = 10;
const resumeLimitMs = 400;
/** A full disk may have space for the socket after this time. */
const relinkMs = 10_000;

/** The older agent resumes control unless the newer agent confirms the takeover in time. */
export const predecessorMachine = setup({
  types: {
    events: {} as LinkReport | SuccessionBegin | SuccessionRefuse,
    children: {} as { link: 'link'; write: 'writeRecord'; 'give-up': 'giveUp'; 'take-back': 'takeBack' },
  },
  actors: {
    link: callbackEffect<LinkOrder, undefined>('link'),
    /** From now on, Envoys outlive their actors until control is resumed. */
    writeRecord: promiseEffect<void, undefined>('writeRecord'),
    /** Releases the base IDs and Envoys only if the record is unchanged. */
    giveUp: promiseEffect<void, undefined>('giveUp'),
    /** Kills the newer agent, then claims the base IDs and their Envoys. Rejects if they are unavailable. */
    takeBack: promiseEffect<ClaimedIds, undefined>('takeBack'),
  },
  delays: {
    writeLimit: writeLimitMs,
    releaseLimit: releaseLimitMs,
    takeoverLimit: takeoverLimitMs,
    finalReportLimit: finalReportLimitMs,
    resumeLimit: resumeLimitMs,
    relinkDelay: relinkMs,
  },
  actions: {
    requestHandOver: sendParent({ type: 'succession.due' }),
    grantSuccession: sendTo('link', { type: 'successor.grant' }),
    rejectSuccessor: sendTo('link', (_, { reason }: { reason: string }) => ({
      type: 'successor.refuse' as const,
      reason,
    })),
    reportDone: sendParent({ type: 'succession.done' }),
    reportFailed: sendParent((_, params: { reason: string; claimed: ClaimedIds }) => ({
      type: 'succession.failed',
      ...params,
    })),
  },
}).createMachine({
  id: 'predecessor',
  description: 'Hands over to a newer agent of this container, and resumes control if that one fails.',
  meta: { timeline: noLane },
  initial: 'open',
  states: {
    open: {
      description: 'The link for newer agents is open.',
      invoke: { id: 'link', src: 'link' },
      initial: 'idle',
      on: {
        // An agent that was rejected or sent its final report exits.
        'successor.ready': {},
        'successor.confirmed': {},
        'successor.lost': {},
        'link.failed': {},
      },
      states: {
        idle: {
          meta: { waitsFor: 'a newer agent, which may never come' },
          description: 'No newer agent is connected.',
          on: { 'successor.ready': 'writing record', 'link.failed': '#predecessor.link unavailable' },
        },
        'writing record': {
          description: 'This agent is still in control.',
          invoke: {
            id: 'write',
            src: 'writeRecord',
            onDone: 'requesting hand-over',
            onError: {
              target: 'idle',
              actions: { type: 'rejectSuccessor', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          after: {
            writeLimit: {
              target: 'idle',
              actions: {
                type: 'rejectSuccessor',
                params: { reason: `state record not written within ${writeLimitMs} ms` },
              },
            },
          },
          on: { 'successor.lost': 'idle' },
        },
        'requesting hand-over': {
          meta: { waitsFor: 'the agent, which responds in the same turn' },
          entry: 'requestHandOver',
          on: {
            'succession.begin': 'releasing control',
            'succession.refuse': {
              target: 'idle',
              actions: { type: 'rejectSuccessor', params: ({ event }) => ({ reason: event.reason }) },
            },
          },
        },
        'releasing control': {
          description: 'The supervisor has stopped.',
          invoke: {
            id: 'give-up',
            src: 'giveUp',
            onDone: { target: 'waiting for takeover', actions: 'grantSuccession' },
            onError: {
              target: 'resuming control',
              actions: { type: 'rejectSuccessor', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          after: { releaseLimit: 'resuming control' },
          on: { 'successor.lost': 'resuming control' },
        },
        'waiting for takeover': {
          description: 'No agent is in control, or the newer one is and has not confirmed it.',
          after: { takeoverLimit: 'awaiting final report' },
          on: { 'successor.confirmed': '#predecessor.replaced', 'successor.lost': 'resuming control' },
        },
        'awaiting final report': {
          description: 'The confirmation of the newer agent may still be in transit.',
          after: { finalReportLimit: 'resuming control' },
          on: { 'successor.confirmed': '#predecessor.replaced', 'successor.lost': 'resuming control' },
        },
        'resuming control': {
          description: 'Messages of the newer agent are ignored.',
          invoke: {
            id: 'take-back',
            src: 'takeBack',
            onDone: {
              target: 'idle',
              actions: {
                type: 'reportFailed',
                params: ({ event }) => ({ reason: 'newer agent did not take over', claimed: event.output }),
              },
            },
            onError: '#predecessor.replaced',
          },
          // Another agent has the base IDs and therefore control.
          after: { resumeLimit: '#predecessor.replaced' },
        },
      },
    },
    'link unavailable': {
      description: 'The link could not be opened; the log has the reason. Newer agents cannot connect.',
      after: { relinkDelay: 'open' },
    },
    replaced: {
      meta: { waitsFor: 'the end of this agent' },
      description: 'Another agent is in control, or will be once the launcher has started it.',
      entry: 'reportDone',
    },
  },
});
