import { secretsTimeline } from '../timeline.ts';
import { noParts, type SecretsContext, secretsSetup } from './secrets.setup.ts';

export type { SecretsInput, ServerFound } from './secrets.setup.ts';

const readyByUs = {
  type: 'tellReady' as const,
  params: ({ context }: { context: SecretsContext }) => ({ by: 'us' as const, reason: context.reason }),
};

/**
 * The secrets of a workload: whose there are, where each comes from, and in which order Envoy gets them. A certificate is handed
 * out when Envoy trusts the authorities that it leads to.
 */
export const secretsMachine = secretsSetup.createMachine({
  id: 'secrets',
  description: 'The certificates, keys and roots that Envoy asks this agent for.',
  meta: { timeline: secretsTimeline },
  context: ({ input }) => ({
    ...input,
    held: [],
    started: 0,
    parts: noParts,
    root: '',
    tainted: [],
    heldBack: null,
    certificateTold: '',
    bundleTaken: '',
    failures: 0,
    outputPauseMs: 0,
  }),
  on: {
    'secrets.start': {},
    'trust-bundle.received': {
      actions: { type: 'tellBundleServed', params: ({ event }) => event },
      description: 'Nobody asks this agent for roots.',
    },
  },
  initial: 'idle',
  states: {
    idle: {
      meta: { waitsFor: 'secrets.start, which the agent sends at once' },
      on: {
        'secrets.start': 'looking for another server',
      },
    },
    'looking for another server': {
      description: 'Somebody else may serve this workload its secrets at the same socket.',
      invoke: {
        id: 'look',
        src: 'lookForServer',
        input: ({ context }) => ({ socket: context.socket }),
        onDone: [
          {
            guard: { type: 'isAnotherAgent', params: ({ event }) => ({ found: event.output }) },
            target: 'failed',
            actions: {
              type: 'tellFailed',
              params: ({ context }) => ({
                reason: `another agent serves secrets on ${context.socket}: start each agent in its own working directory`,
              }),
            },
          },
          {
            guard: { type: 'isAnotherServer', params: ({ event }) => ({ found: event.output }) },
            target: 'served by another',
            actions: {
              type: 'tellReady',
              params: ({ context }) => ({
                by: 'another' as const,
                reason: `another SDS server listens on ${context.socket}`,
              }),
            },
          },
          { target: 'at work' },
        ],
        onError: 'at work',
      },
      after: { lookLimit: 'at work' },
    },
    'served by another': {
      meta: { waitsFor: 'nothing' },
      description: 'Envoy asks the server of somebody else.',
    },
    'at work': {
      entry: 'holdOwn',
      invoke: [
        { id: 'server', src: 'serveSecrets', input: ({ context }) => ({ socket: context.socket }) },
        { id: 'output', src: 'writeOutput' },
      ],
      on: {
        'sds.asked': [
          {
            guard: { type: 'isHeld', params: ({ event }) => event },
            actions: { type: 'noteWanted', params: ({ event }) => event },
          },
          {
            guard: { type: 'mayBeHeld', params: ({ event }) => event },
            actions: { type: 'hold', params: ({ event }) => event },
          },
          { actions: { type: 'refuseName', params: ({ event }) => event } },
        ],
        'sds.left': [
          {
            guard: { type: 'isFile', params: ({ event }) => event },
            actions: { type: 'letGo', params: ({ event }) => event },
          },
          { actions: [{ type: 'noteLeft', params: ({ event }) => event }, 'tellBundleTaken'] },
        ],
        'sds.acknowledged': {
          actions: [{ type: 'noteTaken', params: ({ event }) => event }, 'tellBundleTaken', 'tellCertificateTaken'],
        },
        'sds.rejected': { actions: { type: 'noteRefused', params: ({ event }) => event } },
        'secret.lacking': { actions: { type: 'noteLacking', params: ({ event }) => event } },
        'secret.ended': {
          actions: [
            { type: 'noteEnded', params: ({ event }) => event },
            { type: 'withdraw', params: ({ event }) => event },
          ],
        },
        'secret.obtained': {
          guard: { type: 'mayBeHandedOut', params: ({ event }) => event },
          actions: [
            { type: 'noteObtained', params: ({ event }) => event },
            { type: 'serve', params: ({ event }) => event },
            'tellBundleTaken',
            'tellCertificateTaken',
            'writeOutput',
          ],
        },
        'trust-bundle.received': {
          actions: [
            { type: 'keepBundle', params: ({ event }) => event },
            { type: 'noteBundle', params: ({ event }) => event },
            'refreshRoots',
            { type: 'tellTainted', params: ({ event }) => event },
          ],
        },
      },
      type: 'parallel',
      states: {
        socket: {
          initial: 'opening',
          states: {
            opening: {
              description: 'Envoy is not started before it can ask.',
              entry: 'openSocket',
              after: { openLimit: { target: 'waiting to open', actions: 'countFailure' } },
              on: {
                'sds.listening': [
                  { guard: 'obtainsFirst', target: 'obtaining', actions: 'forgetFailures' },
                  { target: 'open', actions: ['forgetFailures', readyByUs] },
                ],
                'sds.failed': [
                  {
                    guard: 'hasFailedTooOften',
                    target: '#secrets.failed',
                    actions: { type: 'tellFailed', params: ({ event }) => ({ reason: event.reason }) },
                  },
                  { target: 'waiting to open', actions: 'countFailure' },
                ],
              },
            },
            obtaining: {
              meta: { waitsFor: 'the authority or the files; the agent ends without them in 95 s' },
              description:
                'Envoys of an older agent will ask at once, and go on with what they have as long as nobody answers.',
              always: { guard: 'hasOwn', target: 'open', actions: readyByUs },
            },
            'waiting to open': { after: { pause: 'opening' } },
            open: {
              meta: { waitsFor: 'an Envoy that asks: this is the work' },
              on: { 'sds.failed': { target: 'waiting to open again', actions: 'countFailure' } },
            },
            'waiting to open again': {
              description: 'Envoy goes on with what it has.',
              after: { pause: 'opening again' },
            },
            'opening again': {
              entry: 'openSocket',
              after: { openLimit: { target: 'waiting to open again', actions: 'countFailure' } },
              on: {
                'sds.listening': { target: 'open', actions: 'forgetFailures' },
                'sds.failed': { target: 'waiting to open again', actions: 'countFailure' },
              },
            },
          },
        },
        certificate: {
          initial: 'handed out',
          on: {
            'secret.obtained': {
              guard: { type: 'isAheadOfItsRoots', params: ({ event }) => event },
              target: '.held back',
              actions: { type: 'holdBack', params: ({ event }) => event },
            },
          },
          states: {
            'handed out': {
              meta: { waitsFor: 'a certificate that leads to other roots: this is the work' },
              description: 'Envoy gets each certificate as soon as it is there.',
            },
            'held back': {
              description:
                'Envoy does not trust the authorities yet to which the new certificate leads. It goes on with the old one.',
              always: {
                guard: 'rootsAreTrusted',
                target: 'handed out',
                actions: ['serveHeldBack', 'tellCertificateTaken', 'writeOutput'],
              },
              after: {
                trustLimit: [
                  {
                    guard: 'rootsAreServed',
                    target: 'handed out',
                    actions: ['serveHeldBack', 'tellCertificateTaken', 'writeOutput'],
                    description: 'They were handed out, and somebody does not answer.',
                  },
                  { target: 'held back', reenter: true },
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
              meta: { waitsFor: 'a new certificate or new roots: this is the work' },
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
    failed: { meta: { waitsFor: 'nothing' }, description: 'The socket cannot be had.' },
  },
});
