/**
 * Every event of pilot-agent as a table: what protocol.ts declares, for tests and tools to read. What an event means stands
 * above its type there, and docs/events.md has both together.
 */
import type { CatalogueRow } from '../catalogue-row.ts';

type Diagram =
  | 'startup'
  | 'signals'
  | 'status'
  | 'watch'
  | 'directory'
  | 'restart'
  | 'one-restart'
  | 'decision'
  | 'retry'
  | 'replacement'
  | 'end'
  | 'shutdown'
  | 'epoch'
  | 'dns'
  | 'secrets'
  | 'secret'
  | 'secret-files';

/**
 * `spawn`, `timer …` and `done` rows are what the runtime itself records of an actor's life: the seeds draw a started process
 * and an armed timer as messages.
 */
export const eventCatalogue: readonly CatalogueRow<Diagram>[] = [
  // ---- from outside, and the status port
  { type: 'spawn', from: 'agent', to: 'status', diagram: 'startup', seeds: ['12.1 #1'] },
  { type: 'status.start', from: 'agent', to: 'status', diagram: 'startup', seeds: ['12.1 #2'] },
  { type: 'spawn', from: 'status', to: 'status/http', diagram: 'status', seeds: [] },
  { type: 'http.listening', from: 'status/http', to: 'status', diagram: 'status', seeds: [] },
  { type: 'http.failed', from: 'status/http', to: 'status', diagram: 'status', seeds: [] },
  { type: 'status.listening', from: 'status', to: 'agent', diagram: 'startup', seeds: [] },
  { type: 'status.failed', from: 'status', to: 'agent', diagram: 'shutdown', seeds: [] },
  { type: 'signal.received', from: 'agent/signals', to: 'agent', diagram: 'signals', seeds: ['12.1 #18'] },
  { type: 'quit.requested', from: 'status/http', to: 'status', diagram: 'status', seeds: [] },
  { type: 'quit.requested', from: 'status', to: 'agent', diagram: 'shutdown', seeds: [] },
  { type: 'status.drain', from: 'agent', to: 'status', diagram: 'shutdown', seeds: [] },

  // ---- whom the status port asks
  { type: 'serving.began', from: 'supervisor', to: 'status', diagram: 'startup', seeds: [] },
  { type: 'serving.ended', from: 'supervisor', to: 'status', diagram: 'retry', seeds: [] },
  { type: 'handover.began', from: 'supervisor', to: 'status', diagram: 'restart', seeds: [] },
  { type: 'handover.ended', from: 'supervisor', to: 'status', diagram: 'retry', seeds: [] },
  { type: 'admin.use', from: 'status', to: 'status/http', diagram: 'status', seeds: [] },
  { type: 'readiness.asked', from: 'status/http', to: 'status', diagram: 'status', seeds: [] },
  { type: 'envoy.ask', from: 'status', to: 'status/http', diagram: 'status', seeds: [] },
  { type: 'envoy.answered', from: 'status/http', to: 'status', diagram: 'status', seeds: [] },
  { type: 'timer answerLimit', from: 'status', to: 'status', diagram: 'status', seeds: [] },
  { type: 'readiness.answer', from: 'status', to: 'status/http', diagram: 'status', seeds: [] },

  // ---- the workload's name server
  { type: 'spawn', from: 'agent', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'dns.start', from: 'agent', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'spawn', from: 'dns', to: 'dns/server', diagram: 'dns', seeds: [] },
  { type: 'dns-port.listening', from: 'dns/server', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'dns-port.failed', from: 'dns/server', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'name-table.received', from: 'dns/server', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'timer openLimit', from: 'dns', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'timer pause', from: 'dns', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'timer trial', from: 'dns', to: 'dns', diagram: 'dns', seeds: [] },
  { type: 'dns.listening', from: 'dns', to: 'agent', diagram: 'dns', seeds: [] },
  { type: 'dns.failed', from: 'dns', to: 'agent', diagram: 'dns', seeds: [] },

  // ---- certificates
  { type: 'spawn', from: 'agent', to: 'cert-watcher', diagram: 'startup', seeds: ['12.1 #5'] },
  { type: 'watch.start', from: 'agent', to: 'cert-watcher', diagram: 'startup', seeds: ['12.1 #6'] },
  { type: 'spawn', from: 'cert-watcher', to: 'cert-watcher/wait', diagram: 'startup', seeds: [] },
  { type: 'files.awaited', from: 'cert-watcher/wait', to: 'cert-watcher', diagram: 'startup', seeds: [] },
  { type: 'timer notice', from: 'cert-watcher', to: 'cert-watcher', diagram: 'startup', seeds: [] },
  { type: 'files.missing', from: 'cert-watcher', to: 'agent', diagram: 'startup', seeds: [] },
  { type: 'timer requiredFilesLimit', from: 'cert-watcher', to: 'cert-watcher', diagram: 'startup', seeds: [] },
  { type: 'spawn', from: 'cert-watcher', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'spawn', from: 'directory-N', to: 'directory-N/watch', diagram: 'directory', seeds: ['12.1 #7'] },
  { type: 'watch.began', from: 'directory-N/watch', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'watch.failed', from: 'directory-N/watch', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'directory.missing', from: 'directory-N/watch', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'directory.found', from: 'directory-N/watch', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'files.changed', from: 'directory-N/watch', to: 'directory-N', diagram: 'directory', seeds: ['12.1 #8'] },
  { type: 'files.changed', from: 'directory-N', to: 'cert-watcher', diagram: 'directory', seeds: [] },
  { type: 'timer setUpLimit', from: 'directory-N', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'timer trial', from: 'directory-N', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'timer pause', from: 'directory-N', to: 'directory-N', diagram: 'directory', seeds: [] },
  { type: 'timer watchDelay', from: 'cert-watcher', to: 'cert-watcher', diagram: 'watch', seeds: ['12.1 #9'] },
  { type: 'timer readingLimit', from: 'cert-watcher', to: 'cert-watcher', diagram: 'watch', seeds: [] },
  { type: 'timer readAgain', from: 'cert-watcher', to: 'cert-watcher', diagram: 'watch', seeds: [] },
  { type: 'timer askAgain', from: 'cert-watcher', to: 'cert-watcher', diagram: 'watch', seeds: [] },
  { type: 'spawn', from: 'cert-watcher', to: 'cert-watcher/digest', diagram: 'watch', seeds: ['12.1 #10'] },
  {
    type: 'config.changed',
    from: 'cert-watcher',
    to: 'supervisor',
    diagram: 'restart',
    seeds: ['12.1 #11', '12.1 #14a'],
  },
  { type: 'config.rejected', from: 'cert-watcher', to: 'supervisor', diagram: 'watch', seeds: [] },

  // ---- secrets of the workload
  { type: 'spawn', from: 'agent', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'secrets.start', from: 'agent', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'secrets.ready', from: 'secrets', to: 'agent', diagram: 'secrets', seeds: [] },
  { type: 'secrets.failed', from: 'secrets', to: 'agent', diagram: 'secrets', seeds: [] },
  { type: 'spawn', from: 'secrets', to: 'secrets/look', diagram: 'secrets', seeds: [] },
  { type: 'timer lookLimit', from: 'secrets', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'spawn', from: 'secrets', to: 'secrets/server', diagram: 'secrets', seeds: [] },
  { type: 'spawn', from: 'secrets', to: 'secrets/output', diagram: 'secrets', seeds: [] },
  { type: 'sds.open', from: 'secrets', to: 'secrets/server', diagram: 'secrets', seeds: [] },
  { type: 'sds.listening', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.failed', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'timer openLimit', from: 'secrets', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'timer pause', from: 'secrets', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'timer trustLimit', from: 'secrets', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.asked', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.left', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.acknowledged', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.rejected', from: 'secrets/server', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'sds.serve', from: 'secrets', to: 'secrets/server', diagram: 'secrets', seeds: [] },
  { type: 'sds.withdraw', from: 'secrets', to: 'secrets/server', diagram: 'secrets', seeds: [] },
  { type: 'sds.refuse', from: 'secrets', to: 'secrets/server', diagram: 'secrets', seeds: [] },
  { type: 'trust-bundle.received', from: 'xds-proxy', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'trust-bundle.served', from: 'secrets', to: 'xds-proxy', diagram: 'secrets', seeds: [] },
  { type: 'output.write', from: 'secrets', to: 'secrets/output', diagram: 'secrets', seeds: [] },
  { type: 'output.failed', from: 'secrets/output', to: 'secrets', diagram: 'secrets', seeds: [] },
  { type: 'spawn', from: 'secrets', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'spawn', from: 'secret-N', to: 'secret-N/obtain', diagram: 'secret', seeds: [] },
  { type: 'spawn', from: 'secret-N', to: 'secret-N/clock', diagram: 'secret', seeds: [] },
  { type: 'spawn', from: 'secret-N', to: 'secret-files-N', diagram: 'secret', seeds: [] },
  { type: 'secret.refresh', from: 'secrets', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'secret.obtained', from: 'secret-N', to: 'secrets', diagram: 'secret', seeds: [] },
  { type: 'secret.lacking', from: 'secret-N', to: 'secrets', diagram: 'secret', seeds: [] },
  { type: 'secret.ended', from: 'secret-N', to: 'secrets', diagram: 'secret', seeds: [] },
  { type: 'timer obtainLimit', from: 'secret-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'timer pause', from: 'secret-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'timer untilLook', from: 'secret-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'timer clockLimit', from: 'secret-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'timer settle', from: 'secret-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'files.changed', from: 'secret-files-N', to: 'secret-N', diagram: 'secret', seeds: [] },
  { type: 'spawn', from: 'secret-files-N', to: 'secret-files-N/watch', diagram: 'secret-files', seeds: [] },
  { type: 'watch.began', from: 'secret-files-N/watch', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'watch.failed', from: 'secret-files-N/watch', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'directory.missing', from: 'secret-files-N/watch', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'directory.found', from: 'secret-files-N/watch', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'files.changed', from: 'secret-files-N/watch', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'timer setUpLimit', from: 'secret-files-N', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'timer trial', from: 'secret-files-N', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },
  { type: 'timer pause', from: 'secret-files-N', to: 'secret-files-N', diagram: 'secret-files', seeds: [] },

  // ---- what to do
  { type: 'spawn', from: 'agent', to: 'supervisor', diagram: 'startup', seeds: ['12.1 #4'] },
  { type: 'supervisor.start', from: 'agent', to: 'supervisor', diagram: 'startup', seeds: ['12.1 #12'] },
  { type: 'supervisor.restart', from: 'agent', to: 'supervisor', diagram: 'restart', seeds: [] },
  { type: 'supervisor.stop', from: 'agent', to: 'supervisor', diagram: 'shutdown', seeds: [] },
  { type: 'supervisor.stop-now', from: 'agent', to: 'supervisor', diagram: 'shutdown', seeds: [] },
  { type: 'logs.reopen', from: 'agent', to: 'supervisor', diagram: 'signals', seeds: [] },
  { type: 'spawn', from: 'supervisor', to: 'start-limiter', diagram: 'startup', seeds: [] },
  { type: 'start.request', from: 'supervisor', to: 'start-limiter', diagram: 'restart', seeds: ['12.1 #13'] },
  { type: 'start.granted', from: 'start-limiter', to: 'supervisor', diagram: 'restart', seeds: ['12.1 #15'] },
  { type: 'start.withdraw', from: 'supervisor', to: 'start-limiter', diagram: 'retry', seeds: [] },
  { type: 'restart.decided', from: 'supervisor', to: 'agent', diagram: 'decision', seeds: [] },
  { type: 'restart.ended', from: 'supervisor', to: 'agent', diagram: 'decision', seeds: [] },
  { type: 'timer backoff', from: 'supervisor', to: 'supervisor', diagram: 'retry', seeds: ['12.1 #14c'] },
  { type: 'timer recyclingDrain', from: 'supervisor', to: 'supervisor', diagram: 'retry', seeds: [] },
  { type: 'done', from: 'supervisor', to: 'agent', diagram: 'shutdown', seeds: ['12.1 #22'] },

  // ---- one restart
  { type: 'spawn', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'wanted.changed', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'serving.lost', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'parent.overdue', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'parent.lost', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'timer startLimit', from: 'restart', to: 'restart', diagram: 'retry', seeds: [] },
  { type: 'child.look', from: 'restart', to: 'supervisor', diagram: 'one-restart', seeds: [] },
  { type: 'child.not-live', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'child.abort', from: 'restart', to: 'supervisor', diagram: 'one-restart', seeds: [] },
  { type: 'child.gone', from: 'supervisor', to: 'restart', diagram: 'one-restart', seeds: [] },
  { type: 'done', from: 'restart', to: 'supervisor', diagram: 'one-restart', seeds: [] },

  // ---- the end of every Envoy
  { type: 'spawn', from: 'supervisor', to: 'shutdown', diagram: 'end', seeds: [] },
  { type: 'epochs.changed', from: 'supervisor', to: 'shutdown', diagram: 'end', seeds: [] },
  { type: 'epochs.drain', from: 'shutdown', to: 'supervisor', diagram: 'end', seeds: [] },
  { type: 'epochs.end', from: 'shutdown', to: 'supervisor', diagram: 'end', seeds: [] },
  { type: 'epochs.kill', from: 'shutdown', to: 'supervisor', diagram: 'end', seeds: [] },
  { type: 'stop.now', from: 'supervisor', to: 'shutdown', diagram: 'end', seeds: [] },
  { type: 'timer minimumDrain', from: 'shutdown', to: 'shutdown', diagram: 'shutdown', seeds: [] },
  { type: 'timer idlePoll', from: 'shutdown', to: 'shutdown', diagram: 'shutdown', seeds: [] },
  { type: 'timer terminationDrain', from: 'shutdown', to: 'shutdown', diagram: 'shutdown', seeds: ['12.1 #20'] },
  { type: 'timer stopLimit', from: 'shutdown', to: 'shutdown', diagram: 'shutdown', seeds: [] },
  { type: 'done', from: 'shutdown', to: 'supervisor', diagram: 'end', seeds: [] },

  // ---- one Envoy
  { type: 'spawn', from: 'supervisor', to: 'epoch-N', diagram: 'startup', seeds: ['12.1 #3'] },
  { type: 'spawn', from: 'supervisor', to: 'epoch-N', diagram: 'restart', seeds: ['12.1 #16'] },
  { type: 'epoch.look', from: 'supervisor', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'epoch.supersede', from: 'supervisor', to: 'epoch-N', diagram: 'restart', seeds: [] },
  { type: 'epoch.retire', from: 'supervisor', to: 'epoch-N', diagram: 'replacement', seeds: [] },
  { type: 'epoch.dismiss', from: 'supervisor', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'epoch.drain', from: 'supervisor', to: 'epoch-N', diagram: 'shutdown', seeds: ['12.1 #19'] },
  { type: 'epoch.terminate', from: 'supervisor', to: 'epoch-N', diagram: 'shutdown', seeds: [] },
  { type: 'epoch.abort', from: 'supervisor', to: 'epoch-N', diagram: 'shutdown', seeds: ['12.1 #21'] },
  { type: 'logs.reopen', from: 'supervisor', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'epoch.started', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.waiting', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.not-live', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.live', from: 'epoch-N', to: 'supervisor', diagram: 'restart', seeds: [] },
  { type: 'epoch.healthy', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.drained', from: 'epoch-N', to: 'supervisor', diagram: 'shutdown', seeds: [] },
  { type: 'epoch.drain-failed', from: 'epoch-N', to: 'supervisor', diagram: 'shutdown', seeds: [] },
  { type: 'epoch.overdue', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.unkillable', from: 'epoch-N', to: 'supervisor', diagram: 'epoch', seeds: [] },
  { type: 'epoch.exited', from: 'epoch-N', to: 'supervisor', diagram: 'restart', seeds: ['12.1 #17'] },
  { type: 'epoch.failed', from: 'epoch-N', to: 'supervisor', diagram: 'retry', seeds: ['12.1 #14b'] },
  { type: 'spawn', from: 'epoch-N', to: 'epoch-N/process', diagram: 'epoch', seeds: [] },
  { type: 'process.signal', from: 'epoch-N', to: 'epoch-N/process', diagram: 'epoch', seeds: [] },
  { type: 'process.spawned', from: 'epoch-N/process', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'process.exited', from: 'epoch-N/process', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'process.failed', from: 'epoch-N/process', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'spawn', from: 'epoch-N', to: 'epoch-N/probe', diagram: 'epoch', seeds: [] },
  { type: 'probe.look', from: 'epoch-N', to: 'epoch-N/probe', diagram: 'epoch', seeds: [] },
  { type: 'probe.waiting', from: 'epoch-N/probe', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'probe.explain', from: 'epoch-N', to: 'epoch-N/probe', diagram: 'epoch', seeds: [] },
  { type: 'probe.lacking', from: 'epoch-N/probe', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'timer prepareLimit', from: 'epoch-N', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'timer firstNotice', from: 'epoch-N', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'timer notice', from: 'epoch-N', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'timer holdBack', from: 'epoch-N', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'probe.passed', from: 'epoch-N/probe', to: 'epoch-N', diagram: 'epoch', seeds: [] },
  { type: 'probe.failed', from: 'epoch-N/probe', to: 'epoch-N', diagram: 'epoch', seeds: [] },
];
