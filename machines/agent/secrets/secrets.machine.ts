import { secretsTimeline } from '../timeline.ts';
import { noRootParts, type SecretsContext, secretsSetup } from './secrets.setup.ts';

export type { SecretsInput, ServerFound } from './secrets.setup.ts';

const reportReadyByUs = {
  type: 'reportReady' as const,
  params: ({ context }: { context: SecretsContext }) => ({ by: 'us' as const, reason: context.reason }),
};

/** Decides which secrets of a workload exist, and in which order Envoy receives them. */
export const secretsMachine = secretsSetup.createMachine({
  id: 'secrets',
  description: 'Certificates, keys and roots that Envoy requests from this agent.',
  meta: { timeline: secretsTimeline },
  context: ({ input }) => ({
    ...input,
    held: [],
    started: 0,
    parts: noRootParts,
    root: '',
    tainted: [],
    deferredCertificate: null,
    reportedCertificate: '',
    reportedBundle: '',
    failures: 0,
    outputPauseMs: 0,
  }),
  on: {
    'secrets.start': {},
    'trust-bundle.received': {
      actions: { type: 'reportBundleServed', params: ({ event }) => event },
      description: 'This agent serves no roots.',
    },
  },
  initial: 'idle',
  states: {
    idle: {
      meta: { waitsFor: 'secrets.start, which the agent sends at once' },
      on: {
        'secrets.start': 'detecting other server',
      },
    },
    'detecting other server': {
      description: 'Another server may serve secrets at the same socket.',
      invoke: {
        id: 'probe',
        src: 'probeServer',
        input: ({ context }) => ({ socket: context.socket }),
        onDone: [
          {
            guard: { type: 'isAnotherAgent', params: ({ event }) => ({ found: event.output }) },
            target: 'failed',
            actions: {
              type: 'reportFailed',
              params: ({ context }) => ({
                reason: `another agent serves secrets on ${context.socket}: start each agent in its own working directory`,
              }),
            },
          },
          {
            guard: { type: 'isAnotherServer', params: ({ event }) => ({ found: event.output }) },
            target: 'using other server',
            actions: {
              type: 'reportReady',
              params: ({ context }) => ({
                by: 'another' as const,
                reason: `another SDS server listens on ${context.socket}`,
              }),
            },
          },
          { target: 'active' },
        ],
        onError: 'active',
      },
      after: { detectLimit: 'active' },
    },
    'using other server': {
      meta: { waitsFor: 'nothing' },
      description: 'Envoy uses another secret server.',
    },
    active: {
      entry: 'addOwnSecrets',
      invoke: [
        { id: 'server', src: 'serveSecrets', input: ({ context }) => ({ socket: context.socket }) },
        { id: 'output', src: 'writeOutput' },
      ],
      on: {
        'sds.subscribed': [
          {
            guard: { type: 'isKnownSecret', params: ({ event }) => event },
            actions: { type: 'recordSubscribed', params: ({ event }) => event },
          },
          {
            guard: { type: 'canAddSecret', params: ({ event }) => event },
            actions: { type: 'addSecret', params: ({ event }) => event },
          },
          { actions: { type: 'rejectName', params: ({ event }) => event } },
        ],
        'sds.unsubscribed': [
          {
            guard: { type: 'isFile', params: ({ event }) => event },
            actions: { type: 'removeSecret', params: ({ event }) => event },
          },
          { actions: [{ type: 'recordUnsubscribed', params: ({ event }) => event }, 'reportBundleAcknowledged'] },
        ],
        'sds.acknowledged': {
          actions: [
            { type: 'recordAcknowledged', params: ({ event }) => event },
            'reportBundleAcknowledged',
            'reportCertificateAcknowledged',
          ],
        },
        'sds.rejected': { actions: { type: 'recordRejected', params: ({ event }) => event } },
        'secret.unavailable': { actions: { type: 'recordUnavailable', params: ({ event }) => event } },
        'secret.expired': {
          actions: [
            { type: 'recordExpired', params: ({ event }) => event },
            { type: 'withdrawSecret', params: ({ event }) => event },
          ],
        },
        'secret.obtained': {
          guard: { type: 'canDistribute', params: ({ event }) => event },
          actions: [
            { type: 'recordObtained', params: ({ event }) => event },
            { type: 'serveSecret', params: ({ event }) => event },
            'reportBundleAcknowledged',
            'reportCertificateAcknowledged',
            'writeOutput',
          ],
        },
        'trust-bundle.received': {
          actions: [
            { type: 'storeBundle', params: ({ event }) => event },
            { type: 'recordBundle', params: ({ event }) => event },
            'refreshRoots',
            { type: 'reportTainted', params: ({ event }) => event },
          ],
        },
      },
      type: 'parallel',
      states: {
        socket: {
          initial: 'opening',
          states: {
            opening: {
              description: 'Envoy is started after the socket is open.',
              entry: 'openSocket',
              after: { openLimit: { target: 'open backoff', actions: 'countFailure' } },
              on: {
                'sds.listening': [
                  { guard: 'obtainsFirst', target: 'obtaining', actions: 'resetFailures' },
                  { target: 'open', actions: ['resetFailures', reportReadyByUs] },
                ],
                'sds.failed': [
                  {
                    guard: 'isRetryLimitReached',
                    target: '#secrets.failed',
                    actions: { type: 'reportFailed', params: ({ event }) => ({ reason: event.reason }) },
                  },
                  { target: 'open backoff', actions: 'countFailure' },
                ],
              },
            },
            obtaining: {
              meta: { waitsFor: 'the authority or the files; the agent ends without them in 95 s' },
              description: 'Adopted Envoys request secrets at once. Until then they keep their current ones.',
              always: { guard: 'hasOwnSecrets', target: 'open', actions: reportReadyByUs },
            },
            'open backoff': { after: { pause: 'opening' } },
            open: {
              meta: { waitsFor: 'requests of Envoy: normal operation' },
              on: { 'sds.failed': { target: 'reopen backoff', actions: 'countFailure' } },
            },
            'reopen backoff': {
              description: 'Envoy keeps its current secrets.',
              after: { pause: 'reopening' },
            },
            reopening: {
              entry: 'openSocket',
              after: { openLimit: { target: 'reopen backoff', actions: 'countFailure' } },
              on: {
                'sds.listening': { target: 'open', actions: 'resetFailures' },
                'sds.failed': { target: 'reopen backoff', actions: 'countFailure' },
              },
            },
          },
        },
        certificate: {
          initial: 'distributed',
          on: {
            'secret.obtained': {
              guard: { type: 'awaitsRoots', params: ({ event }) => event },
              target: '.awaiting roots',
              actions: { type: 'deferCertificate', params: ({ event }) => event },
            },
          },
          states: {
            distributed: {
              meta: { waitsFor: 'a certificate with other roots: normal operation' },
              description: 'Sends each certificate to Envoy as soon as it is issued, if Envoy trusts its roots.',
            },
            'awaiting roots': {
              description:
                'Envoy does not trust the roots of the new certificate yet and keeps the previous certificate.',
              always: {
                guard: 'rootsAreTrusted',
                target: 'distributed',
                actions: ['serveDeferredCertificate', 'reportCertificateAcknowledged', 'writeOutput'],
              },
              after: {
                trustLimit: [
                  {
                    guard: 'rootsAreServed',
                    target: 'distributed',
                    actions: ['serveDeferredCertificate', 'reportCertificateAcknowledged', 'writeOutput'],
                    description: 'The roots were sent, and a client did not acknowledge them.',
                  },
                  { target: 'awaiting roots', reenter: true },
                ],
              },
            },
          },
        },
        files: {
          initial: 'current',
          on: {
            'output.written': { target: '.current', actions: ['resetOutputPause', 'reportOutput'] },
            'output.failed': { target: '.retrying', reenter: true, actions: 'lengthenOutputPause' },
          },
          states: {
            current: {
              meta: { waitsFor: 'a new certificate or new roots: normal operation' },
              description: 'The files of OUTPUT_CERTS are current, or a write is in progress.',
            },
            retrying: {
              description:
                'The last write of the files failed. A new certificate is written without waiting for the pause.',
              after: { outputPause: { target: 'current', actions: 'writeOutput' } },
            },
          },
        },
      },
    },
    failed: { meta: { waitsFor: 'nothing' }, description: 'The socket could not be opened.' },
  },
});
