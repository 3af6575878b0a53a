import { type LogEventTable, noAction } from './log-event.ts';

export const authorityEvents = {
  'certificate.issued': {
    level: 'debug',
    message: 'certificate issued',
    meaning: 'A workload got a certificate.',
    action: noAction,
  },
  'certificate.failed': {
    level: 'error',
    message: 'certificate not issued',
    meaning: 'An error in the control plane; the client got INTERNAL.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'certificate.unsigned': {
    level: 'warn',
    message: 'certificate not signed by the external signer',
    meaning: 'The Kubernetes signer rejected a CertificateSigningRequest, or did not respond.',
    action:
      'Check the signer that `K8S_SIGNER` names and its permission; `reason` has its message. Workloads get no new certificates.',
  },
  'certificate.impersonated': {
    level: 'debug',
    message: 'certificate request rejected, impersonation is not supported',
    meaning: 'A client requested a certificate of another identity.',
    action: noAction,
  },
  'caller.unauthenticated': {
    level: 'debug',
    message: 'certificate request rejected, authentication failed',
    meaning: 'A client without a valid certificate or token requested a certificate.',
    action: noAction,
  },
  'authority.changed': {
    level: 'info',
    message: 'certificate authority changed',
    meaning: 'A rotation of the root entered `stage`; `signer` is the authority that signs.',
    action: noAction,
  },
  'authority.failed': {
    level: 'warn',
    message: 'certificate authority failed, keeping the current one',
    meaning: 'The authority cannot be read or changed.',
    action: 'Correct the files or the Secret that `reason` names before the current authority expires.',
  },
  'authority.inMemory': {
    level: 'warn',
    message: 'certificate authority is kept in memory only',
    meaning: 'After a restart there is a new root, which no workload trusts.',
    action: 'Set `SELF_SIGNED_CA_DIR` or `SELF_SIGNED_CA_SECRET`.',
  },
  'authority.signerFailed': {
    level: 'warn',
    message: 'signing thread failed, restarting it',
    meaning: 'Requests that it was working on failed.',
    action: 'If it repeats, report it with the trace (`--trace`).',
  },
  'authority.rootEnding': {
    level: 'warn',
    message: 'root certificate expires soon, the next one is needed',
    meaning: 'A plugged-in authority is not renewed by the control plane.',
    action: 'Put the next authority into `directory`.',
  },
  'authority.keyReused': {
    level: 'warn',
    message: 'plugged-in authority ignored, it has a new root with the old key',
    meaning: 'Two roots with one key cannot be distinguished in a rotation.',
    action: 'Create the new authority with a key of its own.',
  },
  'authority.postponed': {
    level: 'warn',
    message: 'plugged-in authority waits for the current rotation',
    meaning: 'It is used after the rotation has ended.',
    action: 'None; `/debug/authorityz` shows what the rotation waits for.',
  },
  'authority.reverted': {
    level: 'warn',
    message: 'plugged-in authority not used, its rotation was reverted',
    meaning: 'The authority in `directory` was withdrawn by an order `revert`, also before a restart.',
    action: 'Put another authority into `directory`, or order `rotate` to use this one.',
  },
  'authority.previousUnreadable': {
    level: 'warn',
    message: 'previous authority not readable, using the plugged-in one at once',
    meaning: 'Workloads that do not trust the new root yet are cut off until they get it.',
    action: 'Restart workloads that cannot connect.',
  },
  'authority.expired': {
    level: 'warn',
    message: 'certificate authority expired',
    meaning: '`next` signs from now on; `new root` means that one is created, which no workload trusts yet.',
    action: 'Check the clock, and why no rotation took place before.',
  },
  'authority.orderUnknown': {
    level: 'warn',
    message: 'unknown command in the annotation of the authority Secret',
    meaning: 'The annotation `chartpilot/order` has no valid command; it has no effect.',
    action: 'Use rotate, revert, taint or proceed.',
  },
  'authority.orderRejected': {
    level: 'warn',
    message: 'command in the annotation of the authority Secret rejected',
    meaning: 'The current stage of the rotation cannot execute `order`, so the leader removes it.',
    action: 'Follow `reason`.',
  },
  'authority.rootsUnwritable': {
    level: 'warn',
    message: 'file with root certificates not written',
    meaning: 'The roots apply; their copy on the disk is old.',
    action: 'Check the disk and its permissions.',
  },
  'authority.rootIgnored': {
    level: 'warn',
    message: 'trusted root certificate ignored',
    meaning: 'A root of the mesh configuration or of a bundle cannot be used.',
    action:
      'Correct the root certificate or its trust domain as `reason` describes; certificates that it signed are rejected.',
  },
  'trust-bundle.notSaved': {
    level: 'warn',
    message: 'trust bundle not saved for the next start',
    meaning: 'The bundle applies; after a restart it must be fetched before its certificates are accepted.',
    action: 'Check the disk and its permissions.',
  },
  'revocations.unwritable': {
    level: 'warn',
    message: 'certificate revocation lists not written',
    meaning: 'Proxies keep the last lists.',
    action: 'Check the disk and its permissions.',
  },
  'revocations.unreadable': {
    level: 'warn',
    message: 'file of revoked certificates and tokens not readable, keeping the last content',
    meaning: 'New revocations in the file have no effect.',
    action: 'Correct the file or its permissions as `reason` describes.',
  },
  'revocations.linesInvalid': {
    level: 'warn',
    message: 'file of revoked certificates and tokens has invalid lines',
    meaning: 'These lines revoke nothing; earlier revocations are kept.',
    action: 'Write `token ID` or `certificate SERIAL-NUMBER` on each line.',
  },
  'ledger.linesUnreadable': {
    level: 'warn',
    message: 'workload ledger has unreadable lines',
    meaning: 'A rotation does not wait for the workloads of these lines.',
    action: 'Before the next rotation, check that all workloads trust the new root.',
  },
  'ledger.unwritable': {
    level: 'warn',
    message: 'workload ledger not writable',
    meaning: 'After a restart a rotation may not wait for all workloads.',
    action: 'Check the disk and its permissions.',
  },
} as const satisfies LogEventTable;
