/** Every event between two actors of pilot-agent, with sender and receiver. `noun.happened` is a fact, `noun.order` an order. */

/** TERM, INT, QUIT: exit (a second one: immediately). HUP: restart Envoy. USR1: reopen logs. USR2: ignored by this chart (docs/hot-restart.md). */
export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGHUP' | 'SIGUSR1' | 'SIGUSR2';

/** agent/signals → agent. The operating system delivered a signal to this process. */
export type AgentSignalReceived = { type: 'signal.received'; signal: Signal };

/** agent → status. Open the port. */
export type StatusStart = { type: 'status.start' };
/** status → agent. The port is open; 0 if the status server is disabled. */
export type StatusListening = { type: 'status.listening'; port: number };
/** status → agent. The port cannot be opened, or its server failed. */
export type StatusFailed = { type: 'status.failed'; reason: string };
/** status → agent. POST /quitquitquit from loopback. */
export type QuitRequested = { type: 'quit.requested' };
/** status → agent. POST /upgrade from loopback: check the Envoy binary for a new version. */
export type UpgradeRequested = { type: 'upgrade.requested' };
/** agent → status. The agent is stopping: report not ready. */
export type StatusDrain = { type: 'status.drain' };

/** agent → supervisor. Start Envoy as soon as its configuration is known. */
export type SupervisorStart = { type: 'supervisor.start' };
/** agent → supervisor. Restart Envoy although its configuration is unchanged (SIGHUP). */
export type SupervisorRestart = { type: 'supervisor.restart'; reason: string };
/** agent → supervisor. Drain, then terminate every Envoy. */
export type SupervisorStop = { type: 'supervisor.stop'; reason: string };
/** agent → supervisor. Terminate every Envoy at once. */
export type SupervisorStopNow = { type: 'supervisor.stop-now' };
/** agent → supervisor → every epoch. Reopen access logs (SIGUSR1). */
export type LogsReopen = { type: 'logs.reopen' };

/** agent → cert-watcher. Wait for the required files, send the first configuration, then watch. */
export type WatchStart = { type: 'watch.start' };
/**
 * cert-watcher → supervisor. The certificate files changed, or were read for the first time: Envoy must run with them. The first event is sent even
 * without files, because it starts Envoy. `digest`: SHA-256, in hexadecimal, of the contents of the watched files.
 */
export type ConfigChanged = { type: 'config.changed'; digest: string; files: number };

/**
 * cert-watcher → supervisor. The files changed and are invalid: Envoy keeps its configuration. Recorded in trace and log only; the next
 * change is read.
 */
export type ConfigRejected = { type: 'config.rejected'; reason: string; code?: string };

/**
 * cert-watcher → agent. Missing files of the first start. `awaited`: the start waits for them; otherwise Envoy starts without them. `waitedMs`: lower
 * bound of the wait.
 */
export type FilesMissing = { type: 'files.missing'; files: string[]; waitedMs: number; awaited: boolean };

/** agent → binary-watcher. Check the binary now and offer it, even if it was rejected before. */
export type BinaryCheck = { type: 'binary.check' };
/**
 * binary-watcher → supervisor. A different, compatible Envoy binary was found. `binary`: name by which effects identify the file, even if
 * the path has another file later. `description`: version, digest and real path.
 */
export type BinaryChanged = { type: 'binary.changed'; binary: string; description: string };
/**
 * binary-watcher → supervisor. The new binary is incompatible or could not be checked: Envoy keeps the current one. Recorded in
 * trace and log only.
 */
export type BinaryRejected = { type: 'binary.rejected'; reason: string };
/**
 * supervisor → agent. The new binary did not become live or exited too early: the previous one is restored. The new one is tried again when
 * the file changes or by order.
 */
export type BinaryWithdrawn = { type: 'binary.withdrawn'; binary: string; reason: string };
/** supervisor → agent. The new binary has served long enough not to be withdrawn any more. */
export type BinaryProven = { type: 'binary.proven'; binary: string };

/** A retry keeps the reason of the first attempt. */
export type RestartReason =
  | 'first start'
  | 'configuration changed'
  | 'Envoy replaced'
  | 'Envoy put back'
  | 'ordered'
  | 'Envoy ended'
  | 'Envoy crashed'
  | 'out of memory'
  | 'parent died early';

/** `hot restart`: as the child of a running Envoy. `replacement`: beside the serving epoch, under the other base ID. */
export type RestartKind = 'cold start' | 'hot restart' | 'replacement';

export type RestartOutcome =
  | 'live'
  | 'bootstrap refused'
  | 'certificates changed'
  | 'folder not writable'
  | 'control plane unreachable'
  | 'refused by the parent'
  | 'died'
  | 'not live in time'
  | 'parent lost'
  | 'called off';

/** supervisor → agent. The Envoys of a previous agent belong to this agent. `handOver` is absent if the previous agent was killed. */
export type EpochsAdopted = { type: 'epochs.adopted'; names: string[]; handOver?: HandOver };
/** `granted` by an older agent, or `taken back` from a newer agent that failed. */
export type HandOver = 'granted' | 'taken back';
/** supervisor → agent. An Envoy is about to be started. */
export type RestartDecided = {
  type: 'restart.decided';
  name: string;
  epoch: number;
  reason: RestartReason;
  how: RestartKind;
  attempt: number;
};
/** supervisor → agent. Outcome of the last start. */
export type RestartEnded = {
  type: 'restart.ended';
  name: string;
  epoch: number;
  reason: RestartReason;
  how: RestartKind;
  outcome: RestartOutcome;
  /** Time from the start of the process; absent if the epoch did not become live. */
  timeToLiveMs?: number;
};

/** supervisor → start-limiter. Requests a start of Envoy. Granted now or when a token is available. */
export type StartRequest = { type: 'start.request' };
/** supervisor → start-limiter. The start is no longer needed. */
export type StartWithdraw = { type: 'start.withdraw' };
/** start-limiter → supervisor. One start is granted. */
export type StartGranted = { type: 'start.granted' };

// ---- supervisor → epoch-N

/**
 * The child of this epoch is live: it drains and exits after the parent-shutdown time. `parentShutdownMs`: remaining time if another agent started
 * it. `unseenMs`: upper bound of the time that the child was live before the probe detected it.
 */
export type EpochSupersede = { type: 'epoch.supersede'; parentShutdownMs: number; unseenMs: number };
/**
 * An epoch of the other base ID replaces this one: drain, and terminate after at most `lingerMs`. Envoy does not know of its replacement,
 * so the agent must end it.
 */
export type EpochRetire = {
  type: 'epoch.retire';
  lingerMs: number;
  /** Whether the parent exited too early: then the main thread of this epoch is blocked, and SIGTERM has no effect. */
  isOrphaned: boolean;
};
/** A draining parent may exit now: its child is being terminated, and terminates its parent first. */
export type EpochDismiss = { type: 'epoch.dismiss' };
/** Stop accepting connections and finish requests. */
export type EpochDrain = { type: 'epoch.drain' };
/** Probe whether this epoch is live. If not, the restart may abort it. */
export type EpochProbe = { type: 'epoch.probe' };
/** Terminate gracefully (SIGTERM). Only for the newest, live epoch. */
export type EpochTerminate = { type: 'epoch.terminate' };
/** Send SIGKILL: the only way to end a child that is not live. */
export type EpochAbort = { type: 'epoch.abort' };

// ---- epoch-N → supervisor: `name` is the actor's, `epoch` is Envoy's --restart-epoch

/** The process exists. `adminPort`: port of its admin interface. */
export type EpochStarted = { type: 'epoch.started'; name: string; epoch: number; pid: number; adminPort: number };
/**
 * The epoch serves. `timeToLiveMs`: from the start of the process. `unseenMs`: upper bound of the time that it was live before the probe
 * detected it.
 */
export type EpochLive = { type: 'epoch.live'; name: string; epoch: number; timeToLiveMs: number; unseenMs: number };
/** Response to `epoch.probe` if the epoch is not live. */
export type EpochNotLive = { type: 'epoch.not-live'; name: string; epoch: number; reason: string };
/** Why the epoch is not live yet. Sent at intervals; recorded in trace and log only. */
export type EpochWaiting = { type: 'epoch.waiting'; name: string; epoch: number; reason: string };
/** The epoch was live long enough to reset the retry budget. */
export type EpochHealthy = { type: 'epoch.healthy'; name: string; epoch: number };
/** The admin interface accepted the drain requests. */
export type EpochDrained = { type: 'epoch.drained'; name: string; epoch: number };
/** The drain requests failed: Envoy accepts connections until it is terminated. */
export type EpochDrainFailed = { type: 'epoch.drain-failed'; name: string; epoch: number; reason: string };
/** A draining parent or a retiring epoch did not exit in time. */
export type EpochOverdue = { type: 'epoch.overdue'; name: string; epoch: number };
/** SIGKILL had no effect: the process is blocked in the kernel, and its base ID stays in use. It may still exit later. */
export type EpochUnkillable = { type: 'epoch.unkillable'; name: string; epoch: number; reason: string };
/** The process exited, by order or as a parent after its child took over. */
export type EpochExited = {
  type: 'epoch.exited';
  name: string;
  epoch: number;
  code: number | null;
  signal: string | null;
};
/** The process exited without an order, or could not be started. */
export type EpochFailed = {
  type: 'epoch.failed';
  name: string;
  epoch: number;
  during:
    | 'preparing'
    | 'reading the certificates'
    | 'writing the bootstrap'
    | 'reaching the control plane'
    | 'starting'
    | 'initializing'
    | 'serving'
    | 'draining';
  code: number | null;
  signal: string | null;
  /** Last line of Envoy's output, or the error of the operating system. */
  reason: string;
  /** Whether the kernel killed the process for lack of memory, according to the OOM counter of its cgroup. */
  outOfMemory: boolean;
  /** Envoy refused to attach, because its parent seems to be initializing (docs/hot-restart-reference.md, fact 1). */
  refusedByParent: boolean;
};

/** supervisor → restart. A second probe found that the candidate is not live. */
export type ChildNotLive = { type: 'child.not-live' };
/** supervisor → restart. The process of the candidate exited, or SIGKILL has no effect on it. */
export type ChildEnded = { type: 'child.ended' };
/** supervisor → restart. The serving epoch exited. */
export type ServingLost = { type: 'serving.lost' };
/** supervisor → restart. The parent of the candidate exited, and no epoch serves. */
export type ParentLost = { type: 'parent.lost' };
/** supervisor → restart. The parent of the candidate should have exited, and no epoch serves. */
export type ParentOverdue = { type: 'parent.overdue' };
/** supervisor → restart. `isOutdated`: the candidate was started for a previous desired state, and no client uses it. */
export type DesiredChanged = { type: 'desired.changed'; isOutdated: boolean };
/** restart → supervisor. Probe the candidate again. */
export type ChildProbe = { type: 'child.probe' };
/** restart → supervisor. The start is aborted: kill the candidate. */
export type ChildAbort = {
  type: 'child.abort';
  reason: 'not live in time' | 'something newer is wanted' | 'its parent hangs' | 'its parent is gone';
};

/** supervisor → shutdown. The set of running epochs changed. `adminPort`: of the Envoy whose active requests are counted. */
export type EpochsChanged = { type: 'epochs.changed'; nothingToDrain: boolean; adminPort: number };
/** supervisor → shutdown. Do not wait for requests any more. */
export type StopNow = { type: 'stop.now' };
/** shutdown → supervisor. Drain serving epochs, and kill epochs that are not live yet. */
export type EpochsDrain = { type: 'epochs.drain' };
/** shutdown → supervisor. Send SIGTERM to the newest epoch of each base ID. */
export type EpochsTerminate = { type: 'epochs.terminate' };
/** shutdown → supervisor. Send SIGKILL to the remaining epochs. */
export type EpochsKill = { type: 'epochs.kill' };

// ---- supervisor → status

/** An epoch serves. `pid`: its process. `adminPort`: port of its admin interface. */
export type ServingBegan = {
  type: 'serving.began';
  name: string;
  epoch: number;
  baseId: number;
  adminPort: number;
  pid: number;
};
/** No epoch serves. */
export type ServingEnded = { type: 'serving.ended'; reason: string };
/** An epoch starts beside the serving one. */
export type HandoverBegan = { type: 'handover.began'; name: string };
/** The child exited before it took over. The admin port may be closed. */
export type HandoverEnded = { type: 'handover.ended' };

/** bootstrap-patches/request → bootstrap-patches. The control plane received the request for bootstrap patches. */
export type PatchesRequested = { type: 'patches.requested' };
export type PatchesResult =
  | { readonly is: 'patched' | 'unpatched' }
  | { readonly is: 'unusable'; readonly reason: string }
  | {
      readonly is: 'unreachable';
      readonly reason: string;
      /** The control plane responded and rejected this agent. */
      readonly isRefusal: boolean;
      readonly retryAfterMs: number;
      /** Random, from 0 to 1; spreads the pause. */
      readonly chance: number;
    };
/** bootstrap-patches/request → bootstrap-patches. Result of the request for bootstrap patches. */
export type PatchesCompleted = { type: 'patches.completed'; result: PatchesResult };
/** bootstrap-patches → bootstrap-patches/request. Cancel the request: the control plane did not respond within the limit. */
export type PatchesCancel = { type: 'patches.cancel'; waitedMs: number };
/** cert-watcher/wait → cert-watcher. Files that the first start needs: missing ones that may still appear, and unreadable ones with the reason. */
export type FilesPending = { type: 'files.pending'; missing: string[]; unreachable: string[] };
/** directory-N/watch → directory-N → cert-watcher. A file in a watched directory changed. */
export type WatchedFilesChanged = { type: 'files.changed'; path: string };

/** directory-N/watch → directory-N. The kernel reports changes from now on. */
export type WatchBegan = { type: 'watch.began' };
/** directory-N/watch → directory-N. The directory cannot be watched. `knownHash`: hash of its last known content; `null` if unknown. */
export type WatchFailed = { type: 'watch.failed'; reason: string; knownHash: string | null };
/** directory-N/watch → directory-N. The path has no directory. */
export type DirectoryMissing = { type: 'directory.missing' };
/** directory-N/watch → directory-N. The path has a directory again, or a different one, which is not watched yet. */
export type DirectoryFound = { type: 'directory.found' };

/** epoch-N → epoch-N/process. Send Envoy this signal. */
export type ProcessSignal = { type: 'process.signal'; signal: 'SIGTERM' | 'SIGKILL' | 'SIGUSR1' };
/** epoch-N/process → epoch-N. The process of Envoy exists. `startedAtMs`: time when its start was ordered, by the clock of the host. */
export type ProcessSpawned = { type: 'process.spawned'; pid: number; startedAtMs: number };
/**
 * epoch-N/process → epoch-N. The process of Envoy exited. `lastOutput`: last line of its output. `tookOverWithinMs`: upper bound of the time until it
 * had taken over the listeners of its parent; absent if it did not.
 */
export type ProcessExited = {
  type: 'process.exited';
  code: number | null;
  signal: string | null;
  lastOutput: string;
  refusedByParent: boolean;
  outOfMemory: boolean;
  tookOverWithinMs?: number;
};
/** epoch-N/process → epoch-N. The process could not be started. */
export type ProcessFailed = { type: 'process.failed'; reason: string };
/**
 * epoch-N/probe → epoch-N. The epoch is live with every required listener. `unseenMs`: time since the last failed probe, or since its
 * start.
 */
export type ProbePassed = { type: 'probe.passed'; timeToLiveMs: number; unseenMs: number };
/** epoch-N/probe → epoch-N. The epoch is live but has rejected listeners. `reason`: their names and causes. Sent again after each change. */
export type ProbeIncomplete = { type: 'probe.incomplete'; reason: string };
/** epoch-N → epoch-N/probe. Probe now and report the result. `acceptsMissingListeners`: report the epoch as live even if it rejected listeners. */
export type ProbeRun = { type: 'probe.run'; acceptsMissingListeners: boolean };
/** epoch-N/probe → epoch-N. The requested probe found that the epoch is not live, or lacks listeners. */
export type ProbeFailed = { type: 'probe.failed'; reason: string };
/** epoch-N → epoch-N/probe. Find out why the epoch is not live. */
export type ProbeExplain = { type: 'probe.explain' };
/** epoch-N/probe → epoch-N. Why the epoch is not live, as far as it can be observed. */
export type ProbeWaiting = { type: 'probe.waiting'; reason: string };

export type EpochReport =
  | EpochNotLive
  | EpochUnkillable
  | EpochStarted
  | EpochLive
  | EpochWaiting
  | EpochHealthy
  | EpochDrained
  | EpochDrainFailed
  | EpochOverdue
  | EpochExited
  | EpochFailed;

export type EpochOrder =
  | EpochProbe
  | EpochSupersede
  | EpochRetire
  | EpochDismiss
  | EpochDrain
  | EpochTerminate
  | EpochAbort
  | LogsReopen;

export type RestartEvent = ChildNotLive | ChildEnded | ServingLost | ParentLost | ParentOverdue | DesiredChanged;

export type PhaseOrder = ChildProbe | ChildAbort | EpochsDrain | EpochsTerminate | EpochsKill;

export type ServingReport = ServingBegan | ServingEnded | HandoverBegan | HandoverEnded;
