import { xdsStreamTimeline } from '../timeline.ts';
import {
  bundleLimitMs,
  congestionLimitMs,
  dialLimitMs,
  endLimitMs,
  responseLimitMs,
  xdsStreamSetup,
} from './xds-stream.setup.ts';

/**
 * Envoy's stream is accepted, but not read, before the control plane is connected: its first requests, which list its resources, wait in its buffers.
 * When the control plane ends its stream, the agent ends Envoy's stream too. Keeping Envoy's stream would require the agent to store names and
 * versions of all resources. Envoy 1.40 sends these itself on the next stream, and no resource is sent again (test/e2e/reconnect.test.ts).
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
      actions: { type: 'reportEnded', params: ({ event }) => ({ reason: event.reason }) },
    },
    'stream.supersede': {
      target: '.ending',
      actions: { type: 'recordEnd', params: ({ event }) => ({ code: 'CANCELLED', reason: event.reason }) },
    },
    'certificate.report': {
      actions: { type: 'recordCertificate', params: ({ event }) => event },
      description: 'The next connection reports the certificate.',
    },
    'health.report': {
      actions: { type: 'recordHealth', params: ({ event }) => event },
      description: 'The next connection reports the health.',
    },
    // No roots are pending.
    'trust-bundle.served': {},
    'trust-bundle.refused': {},
    // Late reports of a connection that is being closed.
    'upstream.lost': {},
    'upstream.responded': {},
    'downstream.invalid': {},
    'downstream.congested': {},
    'downstream.relieved': {},
    'upstream.congested': {},
    'upstream.relieved': {},
    'bundle.received': {},
    'module.required': {},
    'module.released': {},
    'module.fetched': {},
    'module.failed': {},
    'resources.rejected': {},
    'response.forwarded': {},
    'request.forwarded': {},
  },
  initial: 'starting',
  states: {
    starting: {
      always: [{ guard: 'hasRecentFailure', target: 'backing off' }, { target: 'active' }],
    },
    'backing off': {
      description: "A recent connection failed. Envoy's requests are not read yet.",
      after: { pause: 'active' },
    },
    active: {
      description: "Connects Envoy's stream to a separate connection to the control plane.",
      invoke: {
        id: 'upstream',
        src: 'upstream',
        input: ({ context: { stream, protocol, failures, certificate, health } }) => ({
          ...{ stream, protocol, certificate, health },
          credential: failures.credential,
        }),
      },
      on: {
        'module.required': { actions: { type: 'requestModule', params: ({ event }) => event } },
        'module.released': { actions: { type: 'requestModule', params: ({ event }) => event } },
        'module.fetched': { actions: { type: 'reportModule', params: ({ event }) => event } },
        'module.failed': { actions: { type: 'reportModule', params: ({ event }) => event } },
        'certificate.report': {
          actions: [
            { type: 'recordCertificate', params: ({ event }) => event },
            { type: 'reportCertificate', params: ({ event }) => event },
          ],
        },
        'health.report': {
          actions: [
            { type: 'recordHealth', params: ({ event }) => event },
            { type: 'reportHealth', params: ({ event }) => event },
          ],
        },
        'upstream.lost': {
          target: 'ending',
          actions: [
            { type: 'reportLost', params: ({ event }) => event },
            { type: 'recordEnd', params: ({ event }) => ({ code: event.code, reason: event.reason }) },
          ],
        },
        'downstream.invalid': {
          target: 'ending',
          actions: {
            type: 'recordEnd',
            params: ({ event }) => ({ code: 'INVALID_ARGUMENT', reason: event.reason }),
          },
        },
      },
      initial: 'connecting',
      states: {
        connecting: {
          description: "Envoy's requests are not read yet.",
          after: {
            connectLimit: {
              target: '#xds-stream.backing off',
              actions: [
                { type: 'recordFailure', params: { isRefusal: false, retryAfterMs: 0 } },
                { type: 'reportUnreachable', params: { reason: `no connection within ${dialLimitMs} ms` } },
              ],
            },
          },
          on: {
            'upstream.opened': 'relaying',
            'upstream.unreachable': {
              target: '#xds-stream.backing off',
              actions: [
                { type: 'recordFailure', params: { isRefusal: false, retryAfterMs: 0 } },
                { type: 'updateChance', params: ({ event }) => ({ chance: event.chance }) },
                { type: 'reportUnreachable', params: ({ event }) => ({ reason: event.reason }) },
              ],
            },
          },
        },
        relaying: {
          description: 'Forwards messages in both directions.',
          type: 'parallel',
          states: {
            responses: {
              initial: 'pending',
              states: {
                pending: {
                  description: 'The control plane accepted the connection and has not responded.',
                  after: {
                    responseLimit: {
                      target: '#xds-stream.ending',
                      actions: [
                        {
                          type: 'reportLost',
                          params: {
                            code: 'DEADLINE_EXCEEDED',
                            reason: `no response within ${responseLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'recordEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `control plane did not respond within ${responseLimitMs} ms`,
                          },
                        },
                      ],
                    },
                  },
                  on: { 'upstream.responded': 'verifying' },
                },
                verifying: {
                  description: 'The control plane responds. The pause is reset only after it has served for some time.',
                  after: { trial: { target: 'established', actions: ['resetFailures', 'reportServed'] } },
                },
                established: {
                  meta: { waitsFor: 'the end of either stream: normal operation' },
                  description: 'The control plane has served for some time.',
                },
              },
            },
            envoy: {
              initial: 'reading',
              states: {
                reading: {
                  meta: { waitsFor: 'the end of either stream: normal operation' },
                  on: { 'downstream.congested': 'congested' },
                },
                congested: {
                  description: 'Envoy reads too slowly: reading from the control plane is paused.',
                  after: {
                    congestionLimit: {
                      target: '#xds-stream.ending',
                      actions: {
                        type: 'recordEnd',
                        params: {
                          code: 'DEADLINE_EXCEEDED',
                          reason: `client read nothing for ${congestionLimitMs} ms`,
                        },
                      },
                    },
                  },
                  on: { 'downstream.relieved': 'reading' },
                },
              },
            },
            'control plane': {
              initial: 'reading',
              states: {
                reading: {
                  meta: { waitsFor: 'the end of either stream: normal operation' },
                  on: { 'upstream.congested': 'congested' },
                },
                congested: {
                  description: 'The control plane does not read: reading from Envoy is paused.',
                  after: {
                    congestionLimit: {
                      target: '#xds-stream.ending',
                      actions: [
                        {
                          type: 'reportLost',
                          params: {
                            code: 'DEADLINE_EXCEEDED',
                            reason: `control plane read nothing for ${congestionLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'recordEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `control plane read nothing for ${congestionLimitMs} ms`,
                          },
                        },
                      ],
                    },
                  },
                  on: { 'upstream.relieved': 'reading' },
                },
              },
            },
            roots: {
              initial: 'acknowledged',
              states: {
                acknowledged: {
                  meta: { waitsFor: 'new roots' },
                  on: {
                    'bundle.received': {
                      target: 'awaiting acknowledgement',
                      actions: [
                        { type: 'recordBundle', params: ({ event }) => event },
                        { type: 'forwardBundle', params: ({ event }) => event },
                      ],
                    },
                  },
                },
                'awaiting acknowledgement': {
                  description:
                    'The agent acknowledges the roots once Envoy trusts them; a rotation of the root waits for this.',
                  after: {
                    bundleLimit: {
                      target: 'acknowledgement overdue',
                      actions: {
                        type: 'rejectBundle',
                        params: { reason: `Envoy did not acknowledge the trust bundle within ${bundleLimitMs} ms` },
                      },
                    },
                  },
                  on: {
                    'trust-bundle.served': {
                      guard: 'isPendingBundle',
                      target: 'acknowledged',
                      actions: ['acknowledgeBundle', 'clearBundle'],
                    },
                    'trust-bundle.refused': {
                      guard: 'isPendingBundle',
                      target: 'acknowledged',
                      actions: [
                        { type: 'rejectBundle', params: ({ event }) => ({ reason: event.reason }) },
                        'clearBundle',
                      ],
                    },
                    'bundle.received': {
                      target: 'awaiting acknowledgement',
                      reenter: true,
                      description: 'Newer roots: the previous ones are not acknowledged.',
                      actions: [
                        { type: 'recordBundle', params: ({ event }) => event },
                        { type: 'forwardBundle', params: ({ event }) => event },
                      ],
                    },
                  },
                },
                'acknowledgement overdue': {
                  description:
                    'The roots were rejected, because Envoy had not acknowledged them. If it does, the agent acknowledges them after all.',
                  meta: {
                    waitsFor: 'Envoy to acknowledge the roots, or newer roots; the control plane has the rejection',
                  },
                  on: {
                    'trust-bundle.served': {
                      guard: 'isPendingBundle',
                      target: 'acknowledged',
                      actions: ['acknowledgeBundle', 'clearBundle'],
                    },
                    'bundle.received': {
                      target: 'awaiting acknowledgement',
                      actions: [
                        { type: 'recordBundle', params: ({ event }) => event },
                        { type: 'forwardBundle', params: ({ event }) => event },
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
      description: "Ends Envoy's stream with a status. The connection to the control plane is closed.",
      entry: 'endDownstream',
      after: {
        endLimit: {
          target: 'ended',
          actions: { type: 'reportEnded', params: { reason: `stream did not close within ${endLimitMs} ms` } },
        },
      },
      on: { 'stream.supersede': {} },
    },
    ended: { type: 'final' },
  },
});
