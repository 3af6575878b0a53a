import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { LinkOrder, LinkReport, SuccessionBegin, SuccessionRefuse } from '../succession-protocol.ts';
import { noLane } from '../timeline.ts';

/** A file of some kilobytes, on a disk that may be slow. */
const writeLimitMs = 1_000;
/** Sockets are closed, or they are not. */
const releaseLimitMs = 250;
/** A newer agent has taken over in a tenth of it. Together with the way back it is less than 2 s. */
const takeoverLimitMs = 1_250;
/** An agent that was not run for a while hears of its timers first, and then of what was said meanwhile. */
const finalReportLimitMs = 10;
/** A process is killed, and the kernel has to free what it held. */
const resumeLimitMs = 400;
/** A disk that was full may have room again. */
const relinkMs = 10_000;

/**
 * The older agent's side of its replacement: the record is written before the right to decide is given up, and that right is taken back
 * unless a newer agent says in time that it holds.
 */
export const predecessorMachine = setup({
  types: {
    events: {} as LinkReport | SuccessionBegin | SuccessionRefuse,
    children: {} as { link: 'link'; write: 'writeRecord'; 'give-up': 'giveUp'; 'take-back': 'takeBack' },
  },
  actors: {
    /** Listens for newer agents of this container: for one at a time. */
    link: callbackEffect<LinkOrder, undefined>('link'),
    /** Writes what this agent knows. From then on Envoys outlive their actors, until the right to decide is taken back. */
    writeRecord: promiseEffect<void, undefined>('writeRecord'),
    /** Lets go of the base ids, and of what runs under them, if the record is still as it should be. */
    giveUp: promiseEffect<void, undefined>('giveUp'),
    /** Ends the newer agent, and takes the base ids again, with what runs under them by now. Fails when that cannot be had. */
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
        // One at a time; and who was refused, or has said its last word, goes.
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
          // Another agent has the base ids, so that one decides.
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
