import { sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect, reasonOf } from '../../effect.ts';
import type { ClaimedIds } from '../envoy/adoption.ts';
import type { LinkOrder, LinkReport, SuccessionBegin, SuccessionRefuse } from '../succession-protocol.ts';
import { noLane } from '../timeline.ts';

/** A file of some kilobytes, on a disk that may be slow. */
const writeLimitMs = 1_000;
/** Sockets are closed, or they are not. */
const giveUpLimitMs = 250;
/** A newer agent has taken over in a tenth of it. Together with the way back it is less than 2 s. */
const holdLimitMs = 1_250;
/** An agent that was not run for a while hears of its timers first, and then of what was said meanwhile. */
const lastWordLimitMs = 10;
/** A process is killed, and the kernel has to free what it held. */
const takeBackLimitMs = 400;
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
    giveUpLimit: giveUpLimitMs,
    holdLimit: holdLimitMs,
    lastWordLimit: lastWordLimitMs,
    takeBackLimit: takeBackLimitMs,
    relink: relinkMs,
  },
  actions: {
    askAgent: sendParent({ type: 'succession.due' }),
    grant: sendTo('link', { type: 'successor.grant' }),
    refuse: sendTo('link', (_, { reason }: { reason: string }) => ({ type: 'successor.refuse' as const, reason })),
    reportDone: sendParent({ type: 'succession.done' }),
    reportFailed: sendParent((_, params: { reason: string; claimed: ClaimedIds }) => ({
      type: 'succession.failed',
      ...params,
    })),
  },
}).createMachine({
  id: 'predecessor',
  description: 'Gives way to a newer agent of this container, and takes back what that one does not take over.',
  meta: { timeline: noLane },
  initial: 'open',
  states: {
    open: {
      description: 'Newer agents can be heard.',
      invoke: { id: 'link', src: 'link' },
      initial: 'alone',
      on: {
        // One at a time; and who was refused, or has said its last word, goes.
        'successor.ready': {},
        'successor.holds': {},
        'successor.gone': {},
        'link.failed': {},
      },
      states: {
        alone: {
          meta: { waitsFor: 'a newer agent, which may never come' },
          description: 'No newer agent is there.',
          on: { 'successor.ready': 'writing the record', 'link.failed': '#predecessor.unheard' },
        },
        'writing the record': {
          description: 'This agent decides as ever.',
          invoke: {
            id: 'write',
            src: 'writeRecord',
            onDone: 'asking the agent',
            onError: {
              target: 'alone',
              actions: { type: 'refuse', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          after: {
            writeLimit: {
              target: 'alone',
              actions: {
                type: 'refuse',
                params: { reason: `state record not written within ${writeLimitMs} ms` },
              },
            },
          },
          on: { 'successor.gone': 'alone' },
        },
        'asking the agent': {
          meta: { waitsFor: 'the agent, which answers in the same turn' },
          entry: 'askAgent',
          on: {
            'succession.begin': 'giving up',
            'succession.refuse': {
              target: 'alone',
              actions: { type: 'refuse', params: ({ event }) => ({ reason: event.reason }) },
            },
          },
        },
        'giving up': {
          description: 'The supervisor is stopped.',
          invoke: {
            id: 'give-up',
            src: 'giveUp',
            onDone: { target: 'waiting for its hold', actions: 'grant' },
            onError: {
              target: 'taking back',
              actions: { type: 'refuse', params: ({ event }) => ({ reason: reasonOf(event.error) }) },
            },
          },
          after: { giveUpLimit: 'taking back' },
          on: { 'successor.gone': 'taking back' },
        },
        'waiting for its hold': {
          description: 'Nobody decides, or the newer agent does and has not said so yet.',
          after: { holdLimit: 'hearing its last word' },
          on: { 'successor.holds': '#predecessor.succeeded', 'successor.gone': 'taking back' },
        },
        'hearing its last word': {
          description: 'The newer agent may have said in time that it holds.',
          after: { lastWordLimit: 'taking back' },
          on: { 'successor.holds': '#predecessor.succeeded', 'successor.gone': 'taking back' },
        },
        'taking back': {
          description: 'What the newer agent says no longer counts.',
          invoke: {
            id: 'take-back',
            src: 'takeBack',
            onDone: {
              target: 'alone',
              actions: {
                type: 'reportFailed',
                params: ({ event }) => ({ reason: 'newer agent did not take over', claimed: event.output }),
              },
            },
            onError: '#predecessor.succeeded',
          },
          // Another agent has the base ids, so that one decides.
          after: { takeBackLimit: '#predecessor.succeeded' },
        },
      },
    },
    unheard: {
      description: 'No newer agent could be heard; the log says why.',
      after: { relink: 'open' },
    },
    succeeded: {
      meta: { waitsFor: 'the end of this agent' },
      description: 'Another agent decides, or will as soon as the launcher has started it.',
      entry: 'reportDone',
    },
  },
});
