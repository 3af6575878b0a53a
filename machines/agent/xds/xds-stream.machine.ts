import { assign, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect } from '../../effect.ts';
import { xdsStreamTimeline } from '../timeline.ts';
import type {
  BundleAnswer,
  BundleArrived,
  CertificateTell,
  DownstreamEnd,
  HealthTell,
  StreamCode,
  StreamNews,
  StreamOrder,
  StreamReport,
  UpstreamLost,
} from '../xds-protocol.ts';
import { type Failures, failedAgain, forgotten, pauseAfter, type Shown } from './xds-pause.ts';

export interface XdsStreamInput {
  stream: number;
  protocol: 'sotw' | 'delta';
  /** Drawn from 0 to 1: spreads the first pause. */
  chance: number;
  /** Failures of the streams before this one. */
  failures: Failures;
  /** Serial number of the certificate that every Envoy of the workload has; empty: none is known of. */
  certificate: string;
  /** How the workload is; null: nobody knows. */
  health: WorkloadHealth | null;
}

/** What the control plane is told of the workload. */
export interface WorkloadHealth {
  healthy: boolean;
  /** Why it is not; empty where it is. */
  message: string;
}

interface XdsStreamContext extends XdsStreamInput {
  /** What Envoy's stream is ended with. */
  end: { code: StreamCode; reason: string };
  /** Roots that wait for somebody to trust them; empty: none do. */
  bundle: string;
}

/** The connection has a limit of its own (5 s), and so have the files that are read before it. */
const dialLimitMs = 15_000;
/** A control plane that a thousand agents come back to at once serves them within a minute. */
const answerLimitMs = 60_000;
/** How long a control plane must serve for the next pause to be the first one again. */
const trialMs = 10_000;
/** Envoy's main thread was seen busy for 10 s. */
const congestionLimitMs = 60_000;
/** Envoy takes new roots within a second, or says why not. */
const bundleLimitMs = 30_000;
/** How long what was written may take to be read. */
const endLimitMs = 10_000;

/** Codes with which a server says that it does not want this client, or not now. */
const refusals: ReadonlySet<StreamCode> = new Set([
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'UNIMPLEMENTED',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
]);

/**
 * One xDS stream of an Envoy, and the connection to the control plane that is made for it alone (spec/agent.md §8.1).
 *
 * Envoy's stream is open before there is a control plane, and nothing of it is read until there is one: Envoy knows what it has
 * and says so in its first requests, which wait in its own buffers. When the control plane goes, Envoy's stream is ended too,
 * and the next one is held in the same way. To keep the stream instead, and subscribe anew in Envoy's name, was decided against:
 * the agent would have to remember names and versions of all resources, and to read each acknowledgement to know which of them
 * Envoy took. Envoy 1.40 brings all of that by itself, and is sent nothing again (test/e2e/reconnect.test.ts).
 */
export const xdsStreamMachine = setup({
  types: {
    context: {} as XdsStreamContext,
    input: {} as XdsStreamInput,
    events: {} as StreamOrder | StreamReport,
    children: {} as { downstream: 'downstream'; upstream: 'upstream' },
  },
  actors: {
    /** Envoy's stream. */
    downstream: callbackEffect<DownstreamEnd, { stream: number }>('downstream'),
    /** The connection to the control plane, and whatever goes through it. */
    upstream: callbackEffect<
      BundleAnswer | CertificateTell | HealthTell,
      Pick<XdsStreamInput, 'stream' | 'protocol' | 'certificate' | 'health'> & { shows: Shown }
    >('upstream'),
  },
  delays: {
    pause: ({ context }) => pauseAfter(context.failures, context.chance),
    dialLimit: dialLimitMs,
    answerLimit: answerLimitMs,
    trial: trialMs,
    congestionLimit: congestionLimitMs,
    bundleLimit: bundleLimitMs,
    endLimit: endLimitMs,
  },
  guards: {
    hasFailedLately: ({ context }) => context.failures.count > 0,
    isAwaited: ({ context, event }) => 'hash' in event && event.hash === context.bundle,
  },
  actions: {
    noteFailure: assign({
      failures: ({ context }, params: { isRefusal: boolean; retryAfterMs: number }) =>
        failedAgain(context.failures, params),
    }),
    forgetFailures: assign({ failures: ({ context }) => forgotten(context.failures) }),
    drawAgain: assign({ chance: (_, params: { chance: number }) => params.chance }),
    rememberEnd: assign({ end: (_, params: { code: StreamCode; reason: string }) => params }),
    rememberBundle: assign({ bundle: (_, params: { hash: string }) => params.hash }),
    forgetBundle: assign({ bundle: '' }),
    noteCertificate: assign({ certificate: (_, { serialNumber }: CertificateTell) => serialNumber }),
    tellCertificate: sendTo(
      'upstream',
      (_, { serialNumber }: CertificateTell): CertificateTell => ({
        type: 'certificate.tell',
        serialNumber,
      }),
    ),
    noteHealth: assign({ health: (_, { healthy, message }: HealthTell) => ({ healthy, message }) }),
    tellHealth: sendTo('upstream', (_, order: HealthTell): HealthTell => order),
    tellUnreachable: sendParent(
      ({ context }, params: { reason: string }): StreamNews => ({
        type: 'upstream.failed',
        stream: context.stream,
        reason: params.reason,
        isRefusal: false,
        retryAfterMs: 0,
      }),
    ),
    tellLost: sendParent(
      ({ context }, { code, reason, retryAfterMs }: Omit<UpstreamLost, 'type'>): StreamNews => ({
        type: 'upstream.failed',
        stream: context.stream,
        reason: `${code}: ${reason}`,
        isRefusal: refusals.has(code),
        retryAfterMs,
      }),
    ),
    tellServed: sendParent(({ context }): StreamNews => ({ type: 'upstream.served', stream: context.stream })),
    tellEnded: sendParent(
      ({ context }, params: { reason: string }): StreamNews => ({
        type: 'stream.ended',
        stream: context.stream,
        reason: params.reason,
      }),
    ),
    tellBundle: sendParent(
      (_, { roots, hash, members, tainted }: Omit<BundleArrived, 'type'>): StreamNews => ({
        type: 'trust-bundle.received',
        roots,
        hash,
        members,
        tainted,
      }),
    ),
    endDownstream: sendTo('downstream', ({ context }): DownstreamEnd => ({ type: 'downstream.end', ...context.end })),
    acknowledgeBundle: sendTo(
      'upstream',
      ({ context }): BundleAnswer => ({ type: 'bundle.answer', hash: context.bundle, refusal: '' }),
    ),
    refuseBundle: sendTo(
      'upstream',
      ({ context }, params: { reason: string }): BundleAnswer => ({
        type: 'bundle.answer',
        hash: context.bundle,
        refusal: params.reason,
      }),
    ),
  },
}).createMachine({
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
                { type: 'tellUnreachable', params: { reason: `no connection in ${dialLimitMs} ms` } },
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
                            reason: `no answer in ${answerLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'rememberEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `the control plane has not answered in ${answerLimitMs} ms`,
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
                          reason: `nothing was read in ${congestionLimitMs} ms`,
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
                            reason: `it has read nothing in ${congestionLimitMs} ms`,
                            retryAfterMs: 0,
                          },
                        },
                        {
                          type: 'rememberEnd',
                          params: {
                            code: 'UNAVAILABLE',
                            reason: `the control plane has read nothing in ${congestionLimitMs} ms`,
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
                          params: { reason: `Envoy has not said in ${bundleLimitMs} ms that it trusts these roots` },
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
          actions: { type: 'tellEnded', params: { reason: `its end was not taken in ${endLimitMs} ms` } },
        },
      },
      on: { 'stream.supersede': {} },
    },
    ended: { type: 'final' },
  },
});
