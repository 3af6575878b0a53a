import { assign, enqueueActions, sendParent, sendTo, setup } from 'xstate';
import { callbackEffect, promiseEffect } from '../../effect.ts';
import type { OutputWritten } from '../grpc-bootstrap-protocol.ts';
import { peer } from '../peers.ts';
import type {
  CertificateServed,
  OutputFailed,
  OutputWrite,
  RootParts,
  SdsAcknowledged,
  SdsOrder,
  SdsRejected,
  SdsReport,
  SdsSubscribed,
  SdsUnsubscribed,
  SecretExpired,
  SecretObtained,
  SecretRefresh,
  SecretReport,
  SecretsFailed,
  SecretsReady,
  SecretsStart,
  SecretTaint,
  SecretUnavailable,
  TrustBundleReceived,
  TrustBundleServed,
} from '../secrets-protocol.ts';
import { type IdentitySettings, provesIdentity } from '../settings.ts';
import {
  type HeldSecret,
  identityName,
  isAcknowledged,
  isDistributed,
  rootsName,
  secretFilesOf,
} from './held-secrets.ts';
import { type SecretInput, type SecretSource, secretMachine } from './secret.machine.ts';

export interface SecretsInput extends IdentitySettings {
  /** Envoys ask as soon as this agent has its turn: what they will ask for is obtained before. */
  obtainsFirst?: boolean;
}

export interface SecretsContext extends SecretsInput {
  held: HeldSecret[];
  /** How many secrets there were, for the name of the next. */
  started: number;
  /** What ROOTCA is to be made of. */
  parts: RootParts;
  /** Hash of the root that the last certificate leads to; empty: none came with it. */
  root: string;
  /** Hashes of roots of which there is to be no certificate. */
  tainted: readonly string[];
  /** A certificate that waits until Envoy trusts the authorities that it leads to; null: none. */
  heldBack: Pick<HeldSecret, 'version' | 'serialNumber'> | null;
  /** Serial number of the certificate that every Envoy is known to have; empty: none, or it was not said yet. */
  certificateTold: string;
  /** Version of the control plane's roots that Envoy is known to trust; empty: not the last ones. */
  bundleTaken: string;
  /** Times in a row that the socket could not be opened. */
  failures: number;
  /** Milliseconds until the files of OUTPUT_CERTS are written again; 0: the last write succeeded. */
  outputPauseMs: number;
}

/** The server that answers at the socket. Another agent is somebody else's: its identity is not ours. */
export type ServerFound = 'nobody' | 'a server' | 'another agent';

const probeLimitMs = 3_000;
const openLimitMs = 10_000;
/** 1 s, 2 s, 4 s, 8 s, 16 s (spec/agent.md §7.1). */
const maxOpenFailures = 5;
const firstPauseMs = 1_000;
/** Of the files of OUTPUT_CERTS, like those of the gRPC bootstrap file. */
const minOutputPauseMs = 500;
const maxOutputPauseMs = 30_000;
/** An Envoy answers at once. One that hangs does not keep a certificate from the others. */
const trustLimitMs = 10_000;
/** What a control plane may make an Envoy ask for. */
const maxSecrets = 200;

export const noRootParts: RootParts = { authorities: '', bundle: '' };

/** The words that the secrets' chart is written in: its types, actors, delays, guards and actions. */
export const secretsSetup = setup({
  types: {
    context: {} as SecretsContext,
    input: {} as SecretsInput,
    events: {} as SecretsStart | SdsReport | SecretReport | TrustBundleReceived | OutputFailed | OutputWritten,
    children: {} as { look: 'lookForServer'; server: 'serveSecrets'; output: 'writeOutput' } & Record<
      `secret-${number}`,
      'secret'
    >,
  },
  actors: {
    lookForServer: promiseEffect<ServerFound, { socket: string }>('lookForServer'),
    /** Answers Envoy at the socket, with what it is told to serve. */
    serveSecrets: callbackEffect<SdsOrder, { socket: string }>('serveSecrets'),
    /** Writes what is issued to files (spec/agent.md §7.7). */
    writeOutput: callbackEffect<OutputWrite, undefined>('writeOutput'),
    secret: secretMachine,
  },
  delays: {
    detectLimit: probeLimitMs,
    openLimit: openLimitMs,
    pause: ({ context }) => firstPauseMs * 2 ** (Math.min(context.failures, maxOpenFailures) - 1),
    trustLimit: trustLimitMs,
    outputPause: ({ context }) => context.outputPauseMs,
  },
  guards: {
    isAnotherServer: (_, { found }: { found: ServerFound }) => found === 'a server',
    isAnotherAgent: (_, { found }: { found: ServerFound }) => found === 'another agent',
    isRetryLimitReached: ({ context }) => context.failures >= maxOpenFailures,
    awaitsRoots: ({ context }, event: SecretObtained) => precedesRoots(event, context),
    canDistribute: ({ context }, event: SecretObtained) => !precedesRoots(event, context),
    rootsAreServed: ({ context }) => rootsInForce(context).parts.authorities === context.parts.authorities,
    rootsAreTrusted: ({ context }) => areRootsTrusted(context),
    obtainsFirst: ({ context }) => context.obtainsFirst === true,
    hasOwnSecrets: ({ context: { held } }) => held.every(({ version }) => version !== ''),
    isKnownSecret: ({ context }, { name }: SdsSubscribed) => context.held.some((one) => one.name === name),
    canAddSecret: ({ context }, { name }: SdsSubscribed) =>
      secretFilesOf(name) !== undefined && context.held.length < maxSecrets,
    isFile: (_, { name }: SdsUnsubscribed) => secretFilesOf(name) !== undefined,
  },
  actions: {
    reportReady: sendParent(
      (_, params: Omit<SecretsReady, 'type'>): SecretsReady => ({ type: 'secrets.ready', ...params }),
    ),
    reportFailed: sendParent(
      (_, params: Omit<SecretsFailed, 'type'>): SecretsFailed => ({ type: 'secrets.failed', ...params }),
    ),
    reportOutput: sendParent({ type: 'output.written' } satisfies OutputWritten),
    openSocket: sendTo('server', { type: 'sds.open' }),
    countFailure: assign({ failures: ({ context }) => Math.min(context.failures + 1, maxOpenFailures) }),
    resetFailures: assign({ failures: 0 }),
    lengthenOutputPause: assign({
      outputPauseMs: ({ context }) => Math.min(maxOutputPauseMs, Math.max(minOutputPauseMs, context.outputPauseMs * 2)),
    }),
    resetOutputPause: assign({ outputPauseMs: 0 }),
    /** What every Envoy asks for, obtained before it does. */
    addOwnSecrets: enqueueActions(({ context, enqueue }) => {
      if (!provesIdentity(context)) return;
      const { source, certificateDirectory, rootDirectory, parts, grace } = context;
      const own = [
        { name: identityName, source, directory: certificateDirectory },
        { name: rootsName, source: source === 'files' ? 'files' : 'roots', directory: rootDirectory },
      ] as const;
      own.forEach(({ name, directory, ...from }, number) => {
        const input = { name, source: from.source as SecretSource, directory, number, grace, parts };
        enqueue.spawnChild('secret', { id: `secret-${number}`, input });
      });
      enqueue.assign({ held: own.map(({ name }, number) => newHeldSecret(name, number)), started: own.length });
    }),
    addSecret: enqueueActions(({ context, enqueue }, { name }: SdsSubscribed) => {
      const number = context.started;
      const input: SecretInput = {
        name,
        source: 'files',
        directory: secretFilesOf(name)?.directory ?? '',
        number,
        grace: context.grace,
        parts: noRootParts,
      };
      enqueue.spawnChild('secret', { id: `secret-${number}`, input });
      enqueue.assign({
        held: [...context.held, { ...newHeldSecret(name, number), isWanted: true, wasWanted: true }],
        started: number + 1,
      });
    }),
    removeSecret: enqueueActions(({ context, enqueue }, { name }: SdsUnsubscribed) => {
      const one = context.held.find((held) => held.name === name);
      if (one === undefined) return;
      enqueue.stopChild(one.actor);
      enqueue.assign({ held: context.held.filter((held) => held !== one) });
    }),
    recordSubscribed: assign({
      held: ({ context }, { name }: SdsSubscribed) =>
        withChange(context.held, { name, isWanted: true, wasWanted: true, acknowledged: '' }),
    }),
    recordUnsubscribed: assign({
      held: ({ context }, { name }: SdsUnsubscribed) =>
        withChange(context.held, { name, isWanted: false, acknowledged: '', refused: '' }),
    }),
    recordAcknowledged: assign({
      held: ({ context }, { name, version }: SdsAcknowledged) =>
        withChange(context.held, { name, acknowledged: version, refused: '' }),
    }),
    recordRejected: assign({
      held: ({ context }, { name, reason }: SdsRejected) => withChange(context.held, { name, refused: reason }),
    }),
    recordUnavailable: assign({
      held: ({ context }, { name, reason }: SecretUnavailable) => withChange(context.held, { name, lacking: reason }),
    }),
    recordExpired: assign({
      held: ({ context }, { name }: SecretExpired) => withChange(context.held, { name, version: '', acknowledged: '' }),
    }),
    recordObtained: assign(({ context }, { name, version, serialNumber, parts, root }: SecretObtained) => {
      const isOther = context.held.some((one) => one.name === name && one.version !== version);
      const change = { name, version, serialNumber, parts, lacking: '', ...(isOther && { acknowledged: '' }) };
      return { held: withChange(context.held, change), ...(name === identityName && { root }) };
    }),
    rejectName: sendTo('server', ({ context }, { name }: SdsSubscribed): SdsOrder => {
      const isFile = secretFilesOf(name) !== undefined;
      const reason = isFile ? `limit of ${context.held.length} secrets reached` : 'not a secret name';
      return { type: 'sds.reject', name, reason };
    }),
    serveSecret: sendTo(
      'server',
      (_, { name, version }: SecretObtained): SdsOrder => ({ type: 'sds.serve', name, version }),
    ),
    withdrawSecret: sendTo('server', (_, { name }: SecretExpired): SdsOrder => ({ type: 'sds.withdraw', name })),
    deferCertificate: enqueueActions(
      ({ context, enqueue }, { version, serialNumber, authorities, root }: SecretObtained) => {
        const parts = { ...context.parts, authorities };
        enqueue.assign({ heldBack: { version, serialNumber }, parts, root });
        if (authorities === context.parts.authorities) return;
        enqueue.sendTo(rootsInForce(context).actor, { type: 'secret.refresh', parts });
      },
    ),
    serveDeferredCertificate: enqueueActions(({ context: { held, heldBack }, enqueue }) => {
      if (heldBack === null) return;
      enqueue.sendTo('server', { type: 'sds.serve', name: identityName, version: heldBack.version });
      const change = { name: identityName, ...heldBack, acknowledged: '', lacking: '' };
      enqueue.assign({ held: withChange(held, change), heldBack: null });
    }),
    refreshRoots: sendTo(
      ({ context }) => rootsInForce(context).actor,
      ({ context }): SecretRefresh => ({ type: 'secret.refresh', parts: context.parts }),
    ),
    /** Keeps the control plane's roots in memory under their hash. */
    storeBundle: (_, _params: TrustBundleReceived) => {},
    /** Roots that came with a certificate are older than these, and a root that was dropped meanwhile may be among them. */
    recordBundle: assign(({ context }, { hash, members }: TrustBundleReceived) => ({
      parts: { authorities: members.includes(context.root) ? '' : context.parts.authorities, bundle: hash },
      bundleTaken: '',
    })),
    reportTainted: enqueueActions(
      ({ context: { held, tainted: before }, enqueue }, { tainted }: TrustBundleReceived) => {
        if (tainted.join() === before.join()) return;
        enqueue.assign({ tainted });
        const own = held.find(({ name }) => name === identityName);
        if (own !== undefined)
          enqueue.sendTo(own.actor, { type: 'secret.taint', roots: tainted } satisfies SecretTaint);
      },
    ),
    reportBundleServed: sendTo(
      peer('xds-proxy'),
      (_, { hash }: TrustBundleReceived): TrustBundleServed => ({ type: 'trust-bundle.served', hash }),
    ),
    /** Once for each time that it was received. */
    reportBundleAcknowledged: enqueueActions(({ context, enqueue }) => {
      const { parts, bundleTaken } = context;
      const roots = rootsInForce(context);
      if (parts.bundle === '' || bundleTaken === parts.bundle) return;
      if (roots.parts.bundle !== parts.bundle || !isAcknowledged(roots)) return;
      enqueue.assign({ bundleTaken: parts.bundle });
      enqueue.sendTo(peer('xds-proxy'), { type: 'trust-bundle.served', hash: parts.bundle });
    }),
    /** Once for each: a rotation of the root waits for it. */
    reportCertificateAcknowledged: enqueueActions(({ context: { held, certificateTold }, enqueue }) => {
      const own = held.find(({ name }) => name === identityName);
      if (own === undefined || own.serialNumber === '' || own.serialNumber === certificateTold || !isDistributed(own))
        return;
      const { serialNumber } = own;
      enqueue.assign({ certificateTold: serialNumber });
      enqueue.sendTo(peer('xds-proxy'), { type: 'certificate.served', serialNumber } satisfies CertificateServed);
    }),
    writeOutput: enqueueActions(({ context, enqueue }) => {
      const certificate = context.held.find(({ name }) => name === identityName)?.version ?? '';
      const roots = rootsInForce(context).version;
      if (!context.writesOutput || certificate === '' || roots === '') return;
      enqueue.sendTo('output', { type: 'output.write', certificate, roots });
    }),
  },
});

function newHeldSecret(name: string, number: number): HeldSecret {
  return {
    name,
    actor: `secret-${number}`,
    version: '',
    serialNumber: '',
    parts: noRootParts,
    isWanted: false,
    wasWanted: false,
    acknowledged: '',
    lacking: '',
    refused: '',
  };
}

/** ROOTCA, which is held from the start on. */
function rootsInForce({ held }: SecretsContext): HeldSecret {
  return held.find(({ name }) => name === rootsName) ?? newHeldSecret(rootsName, 1);
}

function withChange(held: readonly HeldSecret[], change: Partial<HeldSecret> & { name: string }): HeldSecret[] {
  return held.map((one) => (one.name === change.name ? { ...one, ...change } : one));
}

/** Whether everybody who asks for roots has those that certificates lead to. */
function areRootsTrusted(context: SecretsContext): boolean {
  const roots = rootsInForce(context);
  return roots.version !== '' && roots.parts.authorities === context.parts.authorities && isAcknowledged(roots);
}

/** Whether Envoy, as far as anybody knows, does not trust the authorities yet that a certificate leads to. */
function precedesRoots({ name, authorities }: SecretObtained, context: SecretsContext): boolean {
  if (name !== identityName || authorities === '') return false;
  return context.parts.authorities !== authorities || !areRootsTrusted(context);
}
