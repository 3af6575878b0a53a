/**
 * Every event that passes between two actors of pilot-agent, declared once: who sends it, who receives it.
 * The order in which they may pass is in sequences/*.mmd; each with its diagram and the seeds' row that it stands for is in
 * event-catalogue.ts.
 *
 * `noun.happened` is a fact, `noun.order` an order.
 */

// ---- outside → agent (the signal effect)

/** TERM, INT, QUIT: end (a second one: at once). HUP: restart Envoy. USR1: reopen logs. USR2: nothing, but no end either. */
export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGHUP' | 'SIGUSR1' | 'SIGUSR2';

/** agent/signals → agent. The operating system delivered a signal to this process. */
export type SignalReceived = { type: 'signal.received'; signal: Signal };

// ---- agent ↔ status

/** agent → status. Open the port. */
export type StatusStart = { type: 'status.start' };
/** status → agent. The port is open; 0 when the status server is switched off. */
export type StatusListening = { type: 'status.listening'; port: number };
/** status → agent. The port cannot be opened, or its server broke. */
export type StatusFailed = { type: 'status.failed'; reason: string };
/** status → agent. POST /quitquitquit from loopback. */
export type QuitRequested = { type: 'quit.requested' };
/** status → agent. POST /upgrade from loopback: is there another Envoy at the path of its binary? */
export type UpgradeRequested = { type: 'upgrade.requested' };
/** agent → status. The agent is stopping: not ready from now on, whatever Envoy says. */
export type StatusDrain = { type: 'status.drain' };

// ---- agent ↔ supervisor

/** agent → supervisor. Begin: Envoy is started when it is known what with. */
export type SupervisorStart = { type: 'supervisor.start' };
/** agent → supervisor. Restart Envoy although its configuration is the same (SIGHUP). */
export type SupervisorRestart = { type: 'supervisor.restart'; reason: string };
/** agent → supervisor. Drain, then end every Envoy. */
export type SupervisorStop = { type: 'supervisor.stop'; reason: string };
/** agent → supervisor. End every Envoy at once. */
export type SupervisorStopNow = { type: 'supervisor.stop-now' };
/** agent → supervisor → every epoch. Reopen access logs (SIGUSR1). */
export type LogsReopen = { type: 'logs.reopen' };

// ---- cert-watcher → supervisor

/** agent → cert-watcher. Begin: wait for files, send the first configuration, then watch. */
export type WatchStart = { type: 'watch.start' };
/**
 * cert-watcher → supervisor. What Envoy should run with is this. Sent once at start whatever the files are: it is what
 * starts Envoy.
 *
 * `digest` is the SHA-256 of the watched files' contents in hexadecimal; of nothing when there are none.
 */
export type ConfigChanged = { type: 'config.changed'; digest: string; files: number };

/**
 * cert-watcher → supervisor. The files changed, and what they are now would not do: Envoy goes on with what it has.
 * For people to read; the next change brings another look.
 */
export type ConfigRejected = { type: 'config.rejected'; reason: string; code?: string };

/**
 * cert-watcher → agent. Files that the first start needs are not there. `awaited`: it is still held up for them; else Envoy is
 * started without them. `waitedMs`: for so long at least.
 */
export type FilesMissing = { type: 'files.missing'; files: string[]; waitedMs: number; awaited: boolean };

// ---- binary-watcher: another Envoy at the path of its binary

/** agent → binary-watcher. Look now, and offer what is there even if it was given up before. */
export type BinaryLook = { type: 'binary.look' };
/**
 * binary-watcher → supervisor. Another Envoy is there, and was found to fit. `binary`: the name by which effects know the file,
 * whatever lies at its path later; `description`: version, digest and real path, for people.
 */
export type BinaryChanged = { type: 'binary.changed'; binary: string; description: string };
/** binary-watcher → supervisor. What is there would not do, or could not be checked: Envoy goes on with what it has. For people. */
export type BinaryRejected = { type: 'binary.rejected'; reason: string };
/**
 * supervisor → agent. The new Envoy has not become live, or did not live long: the one before it is the wanted one again. The new one is tried
 * again when another file is there, or when it is ordered.
 */
export type BinaryWithdrawn = { type: 'binary.withdrawn'; binary: string; reason: string };
/** supervisor → agent. The new Envoy has served for the time in which it would be taken back. */
export type BinaryProven = { type: 'binary.proven'; binary: string };

// ---- supervisor → agent: each decision, for logs and metrics

/** Why an Envoy is started. A retry keeps the reason of the first try. */
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

/** How. `hot restart`: as the child of an Envoy that lives. `replacement`: beside the serving epoch, under the other base id. */
export type RestartKind = 'cold start' | 'hot restart' | 'replacement';

/** What came of it. */
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

/**
 * supervisor → agent. The Envoys that an agent before this one had started, and that outlived it, are this one's now. One that was still on its
 * way to live is watched as if this agent had started it. `handOver` is absent if the agent before this one was killed.
 */
export type EpochsAdopted = { type: 'epochs.adopted'; names: string[]; handOver?: HandOver };
/** How an agent got Envoys that it has not started: from an agent that gave way, or back from a newer one that failed. */
export type HandOver = 'granted' | 'taken back';
/** supervisor → agent. An Envoy is about to be started. */
export type RestartDecided = {
  type: 'restart.decided';
  name: string;
  epoch: number;
  reason: RestartReason;
  how: RestartKind;
  /** 1 for the first try, 2 for the second, … */
  attempt: number;
};
/** supervisor → agent. The start that was decided last is over, one way or the other. */
export type RestartEnded = {
  type: 'restart.ended';
  name: string;
  epoch: number;
  reason: RestartReason;
  how: RestartKind;
  outcome: RestartOutcome;
  /** From the start of the process; absent when it was not live. */
  timeToLiveMs?: number;
};

// ---- supervisor ↔ start-limiter

/** supervisor → start-limiter. May an Envoy be started? Answered now or when a token is there. */
export type StartRequest = { type: 'start.request' };
/** supervisor → start-limiter. No longer wanted. */
export type StartWithdraw = { type: 'start.withdraw' };
/** start-limiter → supervisor. One start is granted. */
export type StartGranted = { type: 'start.granted' };

// ---- supervisor → epoch-N

/**
 * Its successor is live: this epoch is a draining parent now, and Envoy ends it when the parent-shutdown time is over: `parentShutdownMs`, of
 * which an agent that has taken it over says what is left. `unseenMs`: it may have begun so much earlier, as nobody saw the successor become
 * live.
 */
export type EpochSupersede = { type: 'epoch.supersede'; parentShutdownMs: number; unseenMs: number };
/**
 * An epoch of the other base id has taken its place: drain, and end after `lingerMs` at the latest. Envoy knows nothing of
 * its replacement, so nobody else does this.
 */
export type EpochRetire = {
  type: 'epoch.retire';
  lingerMs: number;
  /** Its parent died before its time, so it will not hear a SIGTERM. */
  doomed: boolean;
};
/** A draining parent may leave at any time from now on: its child is being ended, and takes it along. */
export type EpochDismiss = { type: 'epoch.dismiss' };
/** Stop accepting and let requests finish. */
export type EpochDrain = { type: 'epoch.drain' };
/** Say once more whether this epoch is live: it is given up if it is not. */
export type EpochLook = { type: 'epoch.look' };
/** End in good order (SIGTERM). Only for the newest, live epoch. */
export type EpochTerminate = { type: 'epoch.terminate' };
/** End at once (SIGKILL). The only way to end a child that is not live. */
export type EpochAbort = { type: 'epoch.abort' };

// ---- epoch-N → supervisor: `name` is the actor's, `epoch` is Envoy's --restart-epoch

/** The process exists. `adminPort`: where its admin interface is, or will be. */
export type EpochStarted = { type: 'epoch.started'; name: string; epoch: number; pid: number; adminPort: number };
/** This epoch serves. `timeToLiveMs` counts from the start of the process. `unseenMs`: it may have done so for so long. */
export type EpochLive = { type: 'epoch.live'; name: string; epoch: number; timeToLiveMs: number; unseenMs: number };
/** The answer to `epoch.look` of an epoch that is not live. */
export type EpochNotLive = { type: 'epoch.not-live'; name: string; epoch: number; reason: string };
/** Still not live, and why: sent now and then, for people. */
export type EpochWaiting = { type: 'epoch.waiting'; name: string; epoch: number; reason: string };
/** Live for the time that renews the retry budget. */
export type EpochHealthy = { type: 'epoch.healthy'; name: string; epoch: number };
/** The admin interface took the drain orders. */
export type EpochDrained = { type: 'epoch.drained'; name: string; epoch: number };
/** The drain orders did not reach Envoy: it goes on accepting until it is ended. */
export type EpochDrainFailed = { type: 'epoch.drain-failed'; name: string; epoch: number; reason: string };
/** A draining parent has not left in time. */
export type EpochOverdue = { type: 'epoch.overdue'; name: string; epoch: number };
/** SIGKILL has not ended the process: the kernel is not done with it, and it keeps its names. It may still exit some day. */
export type EpochUnkillable = { type: 'epoch.unkillable'; name: string; epoch: number; reason: string };
/** The process is gone, as ordered or as a parent leaves. */
export type EpochExited = {
  type: 'epoch.exited';
  name: string;
  epoch: number;
  code: number | null;
  signal: string | null;
};
/** The epoch came to an end that nobody ordered. */
export type EpochFailed = {
  type: 'epoch.failed';
  name: string;
  epoch: number;
  /** What it was doing. */
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
  /** For people: Envoy's last words, or what the operating system said. */
  reason: string;
  /** The kernel ended it because memory ran out: the counter of its control group says so. */
  outOfMemory: boolean;
  /** Envoy refused to attach because its parent seems to be initializing (spec/envoy-hot-restart.md fact 1). */
  refusedByParent: boolean;
};

// ---- supervisor ↔ restart: one Envoy on its way to live

/** supervisor → restart. It was asked once more, and is not live. */
export type ChildNotLive = { type: 'child.not-live' };
/** supervisor → restart. Its process is gone, or nothing ends it. */
export type ChildGone = { type: 'child.gone' };
/** supervisor → restart. The epoch that served is gone. */
export type ServingLost = { type: 'serving.lost' };
/** supervisor → restart. Its parent is gone, and nobody else serves. */
export type ParentLost = { type: 'parent.lost' };
/** supervisor → restart. Its parent should have left long ago, and nobody else serves. */
export type ParentOverdue = { type: 'parent.overdue' };
/** supervisor → restart. `isOutdated`: other than what it was started for, and nobody would miss it. */
export type WantedChanged = { type: 'wanted.changed'; isOutdated: boolean };
/** restart → supervisor. Ask it once more whether it is live. */
export type ChildLook = { type: 'child.look' };
/** restart → supervisor. It is given up: end it. */
export type ChildAbort = {
  type: 'child.abort';
  why: 'not live in time' | 'something newer is wanted' | 'its parent hangs' | 'its parent is gone';
};

// ---- supervisor ↔ shutdown: the end of every Envoy

/** supervisor → shutdown. Others are left than before: `adminPort` is that of the Envoy whose requests count. */
export type EpochsChanged = { type: 'epochs.changed'; nothingToDrain: boolean; adminPort: number };
/** supervisor → shutdown. No more waiting for requests. */
export type StopHurry = { type: 'stop.now' };
/** shutdown → supervisor. What serves is to let its requests finish, what is not live yet is to go. */
export type EpochsDrain = { type: 'epochs.drain' };
/** shutdown → supervisor. SIGTERM to the newest epoch of each base id. */
export type EpochsEnd = { type: 'epochs.end' };
/** shutdown → supervisor. SIGKILL to whoever is left. */
export type EpochsKill = { type: 'epochs.kill' };

// ---- supervisor → status

/** An epoch serves: this process, whose admin interface is at this port. */
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
/**
 * An epoch starts beside the serving one. A child takes over the admin port: what that port says is the child's state then;
 * and who has to be replaced may have lost it.
 */
export type HandoverBegan = { type: 'handover.began'; name: string };
/** The child is gone without having taken over. The admin port may be gone with it. */
export type HandoverEnded = { type: 'handover.ended' };

// ---- machines ↔ their effects

/** bootstrap-patches/ask → bootstrap-patches. The control plane has the question what it patches in the bootstrap. */
export type PatchesAsked = { type: 'patches.asked' };
/** What comes of asking the control plane what it patches in the bootstrap. */
export type PatchesAnswer =
  | { readonly is: 'patched' | 'unpatched' }
  /** What it says cannot be made use of: by no try. */
  | { readonly is: 'unusable'; readonly reason: string }
  | {
      readonly is: 'unreachable';
      readonly reason: string;
      /** It answered, and did not want this agent. */
      readonly isRefusal: boolean;
      /** So long it asked to be left alone. */
      readonly retryAfterMs: number;
      /** From 0 to 1. */
      readonly chance: number;
    };
/** bootstrap-patches/ask → bootstrap-patches. What came of the question. */
export type PatchesAnswered = { type: 'patches.answered'; answer: PatchesAnswer };
/** bootstrap-patches → bootstrap-patches/ask. Nothing is expected of the control plane any more: it has kept silent so long. */
export type PatchesWithdraw = { type: 'patches.withdraw'; waitedMs: number };
/**
 * cert-watcher/wait → cert-watcher. Of the files that the first start needs, those that may still come, and those that can
 * never be seen, with why. Told at once, and whenever that changes.
 */
export type FilesAwaited = { type: 'files.awaited'; missing: string[]; unreachable: string[] };
/** directory-N/watch → directory-N → cert-watcher. Something happened in a watched directory. */
export type FilesChanged = { type: 'files.changed'; path: string };

/** directory-N/watch → directory-N. The kernel tells of changes from now on. */
export type WatchBegan = { type: 'watch.began' };
/** directory-N/watch → directory-N. The directory cannot be watched. `seen`: what was there last, as a hash; null: not known. */
export type WatchFailed = { type: 'watch.failed'; reason: string; seen: string | null };
/** directory-N/watch → directory-N. There is no directory at the path. */
export type DirectoryMissing = { type: 'directory.missing' };
/** directory-N/watch → directory-N. There is one again, or another one than before. Nobody watches it yet. */
export type DirectoryFound = { type: 'directory.found' };

/** epoch-N → epoch-N/process. Send Envoy this signal. */
export type ProcessSignal = { type: 'process.signal'; signal: 'SIGTERM' | 'SIGKILL' | 'SIGUSR1' };
/** epoch-N/process → epoch-N. Envoy's process exists. `startedAtMs`: when its start was ordered, by the clock of the host. */
export type ProcessSpawned = { type: 'process.spawned'; pid: number; startedAtMs: number };
/**
 * epoch-N/process → epoch-N. Envoy's process is gone. `lastWords` is the last line that Envoy wrote. `tookOverWithinMs`: it was live, and its parent
 * has closed its listeners for it, at most this long after its start; absent where it did not take over, or nobody can tell.
 */
export type ProcessExited = {
  type: 'process.exited';
  code: number | null;
  signal: string | null;
  lastWords: string;
  refusedByParent: boolean;
  outOfMemory: boolean;
  tookOverWithinMs?: number;
};
/** epoch-N/process → epoch-N. The process could not be started at all. */
export type ProcessFailed = { type: 'process.failed'; reason: string };
/**
 * epoch-N/probe → epoch-N. The admin interface answers for this epoch, it is live, and it has each listener that was asked for. `unseenMs`:
 * since the last look that found it not live, or since its start.
 */
export type ProbePassed = { type: 'probe.passed'; timeToLiveMs: number; unseenMs: number };
/** epoch-N/probe → epoch-N. It is live without listeners that it refused: which, and why. Told again when that changes. */
export type ProbeLacking = { type: 'probe.lacking'; reason: string };
/** epoch-N → epoch-N/probe. Look now, and say what comes of it. `asItIs`: whatever listeners it refused. */
export type ProbeLook = { type: 'probe.look'; asItIs: boolean };
/** epoch-N/probe → epoch-N. It was asked to look, and the epoch is not live, or lacks listeners that were asked for. */
export type ProbeFailed = { type: 'probe.failed'; reason: string };
/** epoch-N → epoch-N/probe. Find out what keeps the epoch from being live. */
export type ProbeExplain = { type: 'probe.explain' };
/** epoch-N/probe → epoch-N. What keeps the epoch from being live, as far as that shows from outside. */
export type ProbeWaiting = { type: 'probe.waiting'; reason: string };

/** What an epoch tells its supervisor. */
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

/** What a supervisor orders an epoch to do. */
export type EpochOrder =
  | EpochLook
  | EpochSupersede
  | EpochRetire
  | EpochDismiss
  | EpochDrain
  | EpochTerminate
  | EpochAbort
  | LogsReopen;

/** What a supervisor tells the chart of a restart. */
export type RestartFact = ChildNotLive | ChildGone | ServingLost | ParentLost | ParentOverdue | WantedChanged;

/** What the charts of a restart and of the end ask their supervisor to do. */
export type PhaseOrder = ChildLook | ChildAbort | EpochsDrain | EpochsEnd | EpochsKill;

/** What a supervisor tells the status actor. */
export type ServingReport = ServingBegan | ServingEnded | HandoverBegan | HandoverEnded;
