import { xdsStreamTimeline } from '../timeline.ts';
import {
  answerLimitMs,
  bundleLimitMs,
  congestionLimitMs,
  dialLimitMs,
  endLimitMs,
  xdsStreamSetup,
} from './xds-stream.setup.ts';

/**
 * One xDS stream of an Envoy, and the connection to the control plane that is made for it alone (spec/agent.md §8.1).
 *
 * Envoy's stream is open before there is a control plane, and nothing of it is read until there is one: Envoy knows what it has
 * and says so in its first requests, which wait in its own buffers. When the control plane goes, Envoy's stream is ended too,
 * and the next one is held in the same way. To keep the stream instead, and subscribe anew in Envoy's name, was decided against:
 * the agent would have to remember names and versions of all resources, and to read each acknowledgement to know which of them
 * Envoy took. Envoy 1.40 brings all of that by itself, and is sent nothing again (test/e2e/reconnect.test.ts).
 */
export const xdsStreamMachine = xdsStreamSetup.createMachine({
  id: 'xds-stream',
  description: 'One xDS stream of an Envoy, and its connection to the control plane.',
  meta: { timeline: xdsStreamTimeline },
  context: ({ input }) => ({ ...input, end: { code: 'OK', reason: '' }, bundle: '' }),
  invoke: { id: 'downstream', src: 'downstream', input: ({ context }) => ({ stream: context.stream }) },
  on: {
    'downstream.closed': {
      target: '.ended',
      actions: { type: 'tellEnded', params: ({ event }) => ({ reason: event.reason }) },
    },
    'stream.supersede': {
      target: '.ending',
      actions: { type: 'rememberEnd', params: ({ event }) => ({ code: 'CANCELLED', reason: event.reason }) },
    },
    'certificate.tell': {
      actions: { type: 'noteCertificate', params: ({ event }) => event },
      description: 'The next connection tells it.',
    },
    'health.tell': {
      actions: { type: 'noteHealth', params: ({ event }) => event },
      description: 'The next connection tells it.',
    },
    // Of roots that nobody here waits for.
    'trust-bundle.served': {},
    'trust-bundle.refused': {},
    // The last words of a connection that is being left.
    'upstream.lost': {},
    'upstream.answered': {},
    'downstream.invalid': {},
    'downstream.congested': {},
    'downstream.relieved': {},
    'upstream.congested': {},
    'upstream.relieved': {},
    'bundle.arrived': {},
    'module.required': {},
    'module.released': {},
    'module.fetched': {},
    'module.failed': {},
    // What is for whoever looks at a trace.
    'resources.rejected': {},
    'response.passed': {},
    'request.passed': {},
  },
  initial: 'beginning',
  states: {
    beginning: {
      always: [{ guard: 'hasFailedLately', target: 'held back' }, { target: 'joined' }],
    },
    'held back': {
      description: 'The control plane could not be had a moment ago. Nothing of what Envoy said was read.',
      after: { pause: 'joined' },
    },
    joined: {
      description: "Envoy's stream and a connection of its own to the control plane.",
      invoke: {
        id: 'upstream',
        src: 'upstream',
        input: ({ context: { stream, protocol, failures, certificate, health } }) => ({
          ...{ stream, protocol, certificate, health },
          shows: failures.shows,
        }),
      },
      on: {
        'module.required': { actions: { type: 'requestModule', params: ({ event }) => event } },
        'module.released': { actions: { type: 'requestModule', params: ({ event }) => event } },
        'module.fetched': { actions: { type: 'reportModule', params: ({ event }) => event } },
        'module.failed': { actions: { type: 'reportModule', params: ({ event }) => event } },
        'certificate.tell': {
          actions: [
            { type: 'noteCertificate', params: ({ event }) => event },
            { type: 'tellCertificate', params: ({ event }) => event },
          ],
        },
        'health.tell': {
          actions: [
            { type: 'noteHealth', params: ({ event }) => event },
            { type: 'tellHealth', params: ({ event }) => event },
          ],
        },
        'upstream.lost': {
          target: 'ending',
          actions: [
            { type: 'tellLost', params: ({ event }) => event },
            { type: 'rememberEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
          ],
        },
        'downstream.invalid': {
          target: 'ending',
          actions: {
            type: 'rememberEnd',
            params: ({ event }) => ({ code: 'INVALID_ARGUMENT', reason: event.reason }),
          },
        },
      },
      initial: 'dialing',
      states: {
        dialing: {
          description: 'Nothing of what Envoy said was read.',
          after: {
            dialLimit: {
              target: '#xds-stream.held back',
              actions: [
                { type: 'noteFailure', params: { isRefusal: false, retryAfterMs: 0 } },
                { type: 'tellUnreachable', params: { reason: `no connection within ${dialLimitMs} ms` } },
              ],
            },
          },
          on: {
            'upstream.opened': 'relaying',
            'upstream.unreachable': {
              target: '#xds-stream.held back',
              actions: [
                { type: 'noteFailure', params: { isRefusal: false, retryAfterMs: 0 } },
                { type: 'drawAgain', params: ({ event }) => ({ chance: event.chance }) },
                { type: 'tellUnreachable', params: ({ event }) => ({ reason: event.reason }) },
              ],
            },
          },
        },
        relaying: {
          description: 'What one says the other hears.',
          type: 'parallel',
          states: {
            answers: {
              initial: 'awaited',
              states: {
                awaited: {
                  description: 'The control plane has taken the connection, and has not said anything.',
                  after: {
                    answerLimit: {
                      target: '#xds-stream.ending',
                      actions: [
                        {
                          type: 'tellLost',
                          params: {
                            code: 'DEADLINE_EXCEEDED',
                            reason: `no response within ${answerLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'rememberEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `control plane did not respond within ${answerLimitMs} ms`,
                          },
                        },
                      ],
                    },
                  },
                  on: { 'upstream.answered': 'on trial' },
                },
                'on trial': {
                  description: 'It answers; one that breaks off at once each time is not asked more often for it.',
                  after: { trial: { target: 'good', actions: ['forgetFailures', 'tellServed'] } },
                },
                good: {
                  meta: { waitsFor: 'the end of either stream: this is the work' },
                  description: 'It has served for a while.',
                },
              },
            },
            envoy: {
              initial: 'reads',
              states: {
                reads: {
                  meta: { waitsFor: 'the end of either stream: this is the work' },
                  on: { 'downstream.congested': 'lags' },
                },
                lags: {
                  description: 'Envoy does not read as fast as it is sent: nothing more is read for it meanwhile.',
                  after: {
                    congestionLimit: {
                      target: '#xds-stream.ending',
                      actions: {
                        type: 'rememberEnd',
                        params: {
                          code: 'DEADLINE_EXCEEDED',
                          reason: `client read nothing for ${congestionLimitMs} ms`,
                        },
                      },
                    },
                  },
                  on: { 'downstream.relieved': 'reads' },
                },
              },
            },
            'control plane': {
              initial: 'reads',
              states: {
                reads: {
                  meta: { waitsFor: 'the end of either stream: this is the work' },
                  on: { 'upstream.congested': 'lags' },
                },
                lags: {
                  description: 'The control plane does not read: nothing more is read of Envoy meanwhile.',
                  after: {
                    congestionLimit: {
                      target: '#xds-stream.ending',
                      actions: [
                        {
                          type: 'tellLost',
                          params: {
                            code: 'DEADLINE_EXCEEDED',
                            reason: `control plane read nothing for ${congestionLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'rememberEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `control plane read nothing for ${congestionLimitMs} ms`,
                          },
                        },
                      ],
                    },
                  },
                  on: { 'upstream.relieved': 'reads' },
                },
              },
            },
            roots: {
              initial: 'as trusted',
              states: {
                'as trusted': {
                  meta: { waitsFor: 'other roots, which may come at any time' },
                  on: {
                    'bundle.arrived': {
                      target: 'being trusted',
                      actions: [
                        { type: 'rememberBundle', params: ({ event }) => event },
                        { type: 'tellBundle', params: ({ event }) => event },
                      ],
                    },
                  },
                },
                'being trusted': {
                  description:
                    'The control plane hears that they are trusted when Envoy has said so: a rotation of the root waits for that word.',
                  after: {
                    bundleLimit: {
                      target: 'as trusted',
                      actions: [
                        {
                          type: 'refuseBundle',
                          params: { reason: `Envoy did not acknowledge the trust bundle within ${bundleLimitMs} ms` },
                        },
                        'forgetBundle',
                      ],
                    },
                  },
                  on: {
                    'trust-bundle.served': {
                      guard: 'isAwaited',
                      target: 'as trusted',
                      actions: ['acknowledgeBundle', 'forgetBundle'],
                    },
                    'trust-bundle.refused': {
                      guard: 'isAwaited',
                      target: 'as trusted',
                      actions: [
                        { type: 'refuseBundle', params: ({ event }) => ({ reason: event.reason }) },
                        'forgetBundle',
                      ],
                    },
                    'bundle.arrived': {
                      target: 'being trusted',
                      reenter: true,
                      description: 'Newer ones: what came before is not answered any more.',
                      actions: [
                        { type: 'rememberBundle', params: ({ event }) => event },
                        { type: 'tellBundle', params: ({ event }) => event },
                      ],
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
    ending: {
      description: "Envoy's stream is told its end; the connection to the control plane is gone.",
      entry: 'endDownstream',
      after: {
        endLimit: {
          target: 'ended',
          actions: { type: 'tellEnded', params: { reason: `stream did not close within ${endLimitMs} ms` } },
        },
      },
      on: { 'stream.supersede': {} },
    },
    ended: { type: 'final' },
  },
});
