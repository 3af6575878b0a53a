import { type LogEventTable, noAction } from './log-event.ts';

const bug = 'Report a bug with the trace (`--trace`).';

/** Events of both programs about logging, tracing, faults and state changes. */
export const programEvents = {
  'state.changed': {
    level: 'info',
    message: '{actor}: {from} → {to} ({cause})',
    meaning: 'A state that matters to an operator changed. `on` is the event that caused it (docs/events.md).',
    action: noAction,
  },
  'state.degraded': {
    level: 'warn',
    message: '{actor}: {from} → {to} ({cause})',
    meaning:
      '`retries exhausted`: Envoy could not be started with the current certificate files. The agent retries after 60 s, or at the next change; a serving Envoy continues.',
    action: 'See the `Envoy start failed` lines before it; correct the configuration or the certificate files.',
  },
  'chart.transition': {
    level: 'debug',
    message: '{actor}: {from} → {to} ({on})',
    meaning: 'Any transition of a statechart, with the paths of its states (docs/state-tables.md).',
    action: noAction,
  },
  'event.received': {
    level: 'debug',
    message: '{actor}: {type}',
    meaning: 'An event whose warning is rate limited, at each of its occurrences.',
    action: noAction,
  },
  'log.levelChanged': {
    level: 'info',
    message: 'log level changed',
    meaning:
      'A request to `/scopej`, such as that of `istioctl admin log`, changed the level of `scope` (`all`: every scope), or that of one `proxy`. The levels of the flags apply again after a restart.',
    action: noAction,
  },
  'actor.failed': {
    level: 'warn',
    message: 'component failed',
    meaning: 'A component ended with an error; the rest of the program continues.',
    action: 'See `reason`. If it has no cause outside of the program, report it with the trace (`--trace`).',
  },
  'actor.unexpectedEvent': {
    level: 'warn',
    message: 'unexpected event ignored',
    meaning: 'A statechart got an event that its current state does not handle.',
    action: bug,
  },
  'fault.uncaught': {
    level: 'error',
    message: 'uncaught error, continuing',
    meaning: 'An error that no component handled. `owner` is the stream or request that is closed because of it.',
    action: bug,
  },
  'http.requestFailed': {
    level: 'error',
    message: 'HTTP request failed',
    meaning: 'A handler of the HTTP server threw an error; the client got 500.',
    action: bug,
  },
  'http.failed': {
    level: 'warn',
    message: 'HTTP server failed',
    meaning: 'An HTTP port could not be opened, or its server failed.',
    action: 'Check whether another process uses the port.',
  },
  'watch.failed': {
    level: 'warn',
    message: 'directory watch failed, changes may be missed',
    meaning: 'The kernel cannot watch the directory; it is read again at intervals.',
    action: 'Check its permissions and the limits of inotify (`fs.inotify.max_user_watches`).',
  },
  'files.watchFailed': {
    level: 'error',
    message: 'files not watched, changes may be missed',
    meaning: 'The kernel cannot watch the directory of a configuration file.',
    action: 'Check its permissions and the limits of inotify (`fs.inotify.max_user_watches`).',
  },
  'clock.stepped': {
    level: 'warn',
    message: 'wall clock stepped, checking certificates',
    meaning: 'The clock of the host jumped by `step`.',
    action: 'Check the time synchronization of the host.',
  },
  'log.scopeUnknown': {
    level: 'warn',
    message: 'unknown log scope',
    meaning: 'A log flag names a scope that does not exist; it has no effect.',
    action: 'Use one of `known`.',
  },
  'log.linesLost': {
    level: 'warn',
    message: 'output lines lost',
    meaning: 'The reader of the output was too slow or closed it; this many lines were dropped.',
    action: 'Check the log collector.',
  },
  'node.warning': {
    level: 'warn',
    message: 'Node.js warning',
    meaning: 'A warning of the Node.js runtime.',
    action: bug,
  },
  'trace.unwritable': {
    level: 'warn',
    message: 'trace file not writable, continuing without it',
    meaning: 'The trace of this run has a gap from here on.',
    action: 'Check the disk and the permissions of the file.',
  },
  'trace.resumed': {
    level: 'warn',
    message: 'trace file writable again',
    meaning: 'The trace continues; `lost` lines between `from` and `to` are missing.',
    action: noAction,
  },
  'debugger.available': {
    level: 'info',
    message: 'debugger can attach',
    meaning: 'The trace of the running program is served to local users.',
    action: 'To look into the program, run `command`.',
  },
  'debugger.tokenUnwritable': {
    level: 'warn',
    message: 'debugger token file not writable, pages that need the token are closed',
    meaning: 'The run directory is not writable.',
    action: 'Set another `--runDir`.',
  },
  'debugger.rejected': {
    level: 'debug',
    message: 'trace request rejected',
    meaning: 'A client that is not allowed to read the trace requested it.',
    action: noAction,
  },
} as const satisfies LogEventTable;
