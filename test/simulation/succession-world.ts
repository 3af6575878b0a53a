/**
 * An agent that is replaced, with all participants: the launcher's chart, and for each agent the real charts of the agent, the predecessor and the
 * successor, with scripted effects and a supervisor that adopts running Envoys. Between them are the kernel's objects (processes, the base IDs'
 * sockets, a connection) and the record. The choices of the explorer: orders (`replace`, `end`), faults (`kill:2`, `hang:2`, `full`), news of the
 * supervisor (`learn:1`), and which actor is faster (`boot:2`, `hear:1`, `claim:2`). All share one clock, so that the time without a deciding agent
 * is known.
 */
import { type AnyActorRef, type AnyEventObject, assign, sendParent, setup } from 'xstate';
import { agentMachine } from '../../machines/agent/agent.machine.ts';
import { dueOrdersOf } from '../../machines/agent/agent-upgrade/due-orders.ts';
import { type AgentEnd, launcherMachine } from '../../machines/agent/agent-upgrade/launcher.machine.ts';
import { predecessorMachine } from '../../machines/agent/agent-upgrade/predecessor.machine.ts';
import { type SuccessorClaim, successorMachine } from '../../machines/agent/agent-upgrade/successor.machine.ts';
import type { Adoption, ClaimedIds } from '../../machines/agent/envoy/adoption.ts';
import type { supervisorMachine } from '../../machines/agent/envoy/supervisor.machine.ts';
import { certWatcherMachine } from '../../machines/agent/files/cert-watcher.machine.ts';
import { defaultSettings } from '../../machines/agent/settings.ts';
import type { LinkOrder, TakeoverConfirm } from '../../machines/agent/succession-protocol.ts';
import { promiseEffect } from '../../machines/effect.ts';
import {
  reportEvent,
  scriptedCallback,
  scriptedPromise,
  settleCall,
} from '../../src/debugger/explore/scripted-effect.ts';
import { SymbolicSystem } from '../../src/debugger/explore/symbolic-system.ts';
import type { InvariantViolation, World, WorldChoice } from '../../src/debugger/explore/world.ts';

export interface SuccessionBounds {
  /** Orders to replace the agent. */
  readonly orders: number;
  readonly faults: number;
  /** Number of orders to end. */
  readonly endOrders: number;
  /** Changes of the supervisor's state, which must be recorded. */
  readonly stateChanges: number;
  /** Orders to hot restart a running Envoy. */
  readonly restarts?: number;
  /** Requests at an agent's port, one at a time. */
  readonly questions?: number;
}

export interface SuccessionMachines {
  readonly predecessor: typeof predecessorMachine;
  readonly successor: typeof successorMachine;
  /** A deliberate bug: the kernel gives the base IDs to every process. */
  readonly locksNothing?: boolean;
  /** A deliberate bug: the record is not checked before the base IDs are released. */
  readonly ignoresRecord?: boolean;
  /** A deliberate bug: state changes are not recorded. */
  readonly writesNothing?: boolean;
  /** A deliberate bug: a newer agent treats silence as release by the older one. */
  readonly takesOverOnSilence?: boolean;
  /** A deliberate bug: a newer agent that has not taken over in time is not killed, and continues later. */
  readonly sparesLateSuccessor?: boolean;
  /** A deliberate bug: an agent that follows a killed one and cannot get its base IDs claims others. */
  readonly claimsOtherIds?: boolean;
  /** A deliberate bug: the launcher ignores pending orders of an agent that handed over. */
  readonly ignoresPendingOrders?: boolean;
  /** A deliberate bug: the launcher drops an order that no agent can receive at that time. */
  readonly dropsUnhandledOrders?: boolean;
  /** A deliberate bug: an agent's ports are closed when it ends. */
  readonly keepsNoPorts?: boolean;
}

const defaultMachines: SuccessionMachines = { predecessor: predecessorMachine, successor: successorMachine };

/** `hung`: it runs but does nothing. `ended`: the launcher does not know yet. */
type ProcessState = 'booting' | 'running' | 'hung' | 'ended' | 'reaped';

interface Process {
  readonly number: number;
  readonly isSuccessor: boolean;
  readonly processState: ProcessState;
  readonly endKind: AgentEnd;
  /** Whether its exit code reports an order that it has received but not executed. */
  readonly leavesOrder: boolean;
  readonly root: AnyActorRef | undefined;
  /** Whether it must end because of an order from before it could receive orders. */
  readonly endIsDue: boolean;
  /** Pending effects, by name. */
  readonly calls: ReadonlyMap<string, AnyActorRef>;
  /** The newest state known to it. */
  readonly knownVersion: number;
}

/** A newer agent's connection to an older one. */
interface Link {
  readonly newer: number;
  readonly older: number;
  /** Unread messages to the older agent, and to the newer one. */
  readonly toOlder: readonly string[];
  readonly toNewer: readonly string[];
}

interface State extends Required<SuccessionBounds> {
  readonly agent: number;
  readonly newerAgent: number | undefined;
  readonly processes: readonly Process[];
  readonly link: Link | undefined;
  /** The agent that has the base IDs. */
  readonly holder: number | undefined;
  /** The content of the record, if there is one. */
  readonly record: number | undefined;
  readonly diskIsFull: boolean;
  /** The newest state known to any supervisor. */
  readonly currentVersion: number;
  /** Receiver of an order to restart that has not begun: the launcher or an agent. */
  readonly owedBy: 'launcher' | number | undefined;
  /** The process at whose port a request waits, if any. {@link noOne}: it never gets a response. */
  readonly requestedAt: number | undefined;
  /** Whether an agent has decided before. */
  readonly hasBegun: boolean;
  readonly violations: readonly InvariantViolation[];
}

/** Maximum durations, in milliseconds. */
const durationsMs = {
  boot: 900,
  write: 50,
  giveUp: 20,
  claim: 50,
  takeBack: 50,
  adopt: 50,
  hear: 20,
  reap: 20,
  pass: 70,
};
const maxWithoutControlMs = 2_000;
const noControl = 'nobody decides';
/** The number of no process. */
const noOne = 0;
const settings = { ...defaultSettings, statusPort: 0, liveRestore: true, givesWay: true };

const adoption: Adoption = {
  desired: { digest: '', orders: 0, binary: '' },
  epochs: [],
  recovery: 'none',
  provenDigest: '',
  provenBinary: '',
};

export class SuccessionWorld implements World {
  readonly spawnCount = 0;
  readonly #system = new SymbolicSystem();
  readonly #launcher: AnyActorRef;
  readonly #machines: SuccessionMachines;
  #state: State;

  constructor(bounds: SuccessionBounds, machines: Partial<SuccessionMachines> = {}) {
    this.#machines = { ...defaultMachines, ...machines };
    this.#state = {
      ...bounds,
      ...{ agent: 0, newerAgent: undefined, processes: [], link: undefined, holder: undefined, record: undefined },
      ...{
        restarts: bounds.restarts ?? 0,
        owedBy: undefined,
        questions: bounds.questions ?? 0,
        requestedAt: undefined,
      },
      ...{ diskIsFull: false, currentVersion: 0, hasBegun: false, violations: [] },
    };
    this.#launcher = this.#system.start(this.#launcherLogic(), { id: 'launcher', input: undefined });
    this.#settle();
  }

  get violations(): readonly InvariantViolation[] {
    return this.#state.violations;
  }

  get isEnding(): boolean {
    return (this.#launcher.getSnapshot() as { context: { isEndRequested: boolean } }).context.isEndRequested;
  }

  /** Whether one agent decides, alone or next to one that hangs and owns nothing; or all have ended on order. */
  get isGoalReached(): boolean {
    const livingProcesses = this.#state.processes.filter(({ processState }) => processState !== 'reaped');
    if (this.#isOver) return livingProcesses.length === 0;
    if (this.#state.owedBy !== undefined && !this.isEnding) return false;
    if (this.#state.requestedAt !== undefined && !this.isEnding) return false;
    return (
      livingProcesses.some((process) => this.#isDeciding(process)) &&
      livingProcesses.filter(({ processState }) => processState !== 'hung').length === 1
    );
  }

  choices(): readonly WorldChoice[] {
    const { orders, faults, endOrders, stateChanges, restarts, processes, link, diskIsFull, violations } = this.#state;
    if (violations.length > 0 || this.#isOver) return [];
    const freeChoice = (name: string): WorldChoice => ({ name, free: true });
    const bounded = (name: string): WorldChoice => ({ name, free: false });
    const choices: WorldChoice[] = [];
    if (orders > 0) choices.push(bounded('replace'));
    if (endOrders > 0) choices.push(bounded('end'));
    if (restarts > 0 && this.#state.hasBegun && this.#state.owedBy === undefined) choices.push(bounded('restart'));
    if (this.#canPass) choices.push(freeChoice('pass'));
    if (this.#state.questions > 0 && this.#state.requestedAt === undefined && this.#decidingProcesses.length > 0)
      choices.push(bounded('ask'));
    if (this.#canReply) choices.push(freeChoice('reply'));
    if (this.#standsIn && this.#decidingProcesses.length > 0) choices.push(freeChoice('passOn'));
    if (faults > 0 && !diskIsFull) choices.push(bounded('full'));
    for (const process of processes) {
      const { number, processState, calls } = process;
      if (processState === 'booting') choices.push(freeChoice(`boot:${number}`));
      if (processState === 'ended') choices.push(freeChoice(`reap:${number}`));
      if (processState === 'running') for (const name of calls.keys()) choices.push(freeChoice(`${name}:${number}`));
      if (processState === 'running' && stateChanges > 0 && this.#isDeciding(process))
        choices.push(bounded(`learn:${number}`));
      if (faults > 0 && ['booting', 'running'].includes(processState)) choices.push(bounded(`kill:${number}`));
      // The hang of a single agent is only detected by its liveness probe, which is not modelled here.
      if (faults > 0 && processState === 'running' && this.#isWaitingNewerAgent(process))
        choices.push(bounded(`hang:${number}`));
    }
    if (link !== undefined && this.#isRunning(link.older) && link.toOlder.length > 0)
      choices.push(freeChoice(`hear:${link.older}`));
    if (link !== undefined && this.#isRunning(link.newer) && link.toNewer.length > 0)
      choices.push(freeChoice(`hear:${link.newer}`));
    for (const timer of this.#system.zone.firableTimers()) choices.push(freeChoice(`tick:${timer}`));
    return choices;
  }

  apply(choice: string): void {
    const [kind = '', subject = ''] = choice.split(':');
    const number = Number(subject);
    switch (kind) {
      case 'replace':
        this.#set({ orders: this.#state.orders - 1 });
        this.#launcher.send({ type: 'succession.order' });
        break;
      case 'end':
        this.#set({ endOrders: this.#state.endOrders - 1 });
        this.#launcher.send({ type: 'end.order' });
        break;
      case 'restart':
        this.#set({ restarts: this.#state.restarts - 1, owedBy: 'launcher' });
        this.#launcher.send({ type: 'signal.order' });
        break;
      case 'ask':
        this.#set({ questions: this.#state.questions - 1, requestedAt: this.#decidingProcesses[0]!.number });
        break;
      case 'reply':
        this.#set({ requestedAt: undefined });
        break;
      case 'passOn':
        this.#set({ requestedAt: this.#decidingProcesses[0]!.number });
        break;
      case 'pass':
        this.#passOrder();
        break;
      case 'full':
        this.#spendFault();
        this.#set({ diskIsFull: true });
        break;
      case 'learn':
        this.#set({ stateChanges: this.#state.stateChanges - 1, currentVersion: this.#state.currentVersion + 1 });
        this.#changeProcess(number, { knownVersion: this.#state.currentVersion });
        if (this.#machines.writesNothing !== true) this.#write(number);
        break;
      case 'kill':
        this.#spendFault();
        this.#kill(number);
        break;
      case 'hang':
        this.#spendFault();
        this.#stopProcess(number, 'hung');
        break;
      case 'boot':
        this.#bootProcess(number);
        break;
      case 'reap':
        this.#reapProcess(number);
        break;
      case 'hear':
        this.#receiveMessages(number);
        break;
      case 'tick':
        this.#system.fire(subject);
        break;
      default:
        this.#respond(kind, number);
    }
    this.#settle();
  }

  key(): string {
    const { processes, ...state } = this.#state;
    const processKeys = processes
      .filter(({ processState }) => processState !== 'reaped')
      .map(({ root: _, calls, ...rest }) => ({ ...rest, calls: [...calls.keys()] }));
    let key = JSON.stringify([state, processKeys]) + this.#system.zone.orderKey();
    for (const actor of this.#system.actors()) {
      const { value, context } = actor.getSnapshot() as { value?: unknown; context?: Record<string, unknown> };
      const { endIsDue, isAnothers, trouble, endAsked, ordersDue } = context ?? {};
      const contextKey = [endIsDue, isAnothers, (trouble as [] | undefined)?.length, endAsked, ordersDue];
      if (value !== undefined) key += `${actor.id} ${JSON.stringify(value)} ${JSON.stringify(contextKey)}\n`;
    }
    return key;
  }

  save(): () => void {
    const state = this.#state;
    const restore = this.#system.save();
    return () => {
      this.#state = state;
      restore();
    };
  }

  // ---- violations

  #settle(): void {
    this.#noteEnds();
    if (this.#standsIn && this.#machines.keepsNoPorts === true) this.#set({ requestedAt: noOne });
    this.#armNature();
    const deciding = this.#decidingProcesses;
    if (deciding.length > 0 || this.#isOver || this.isEnding) {
      this.#system.disarm(noControl);
      if (deciding.length > 0) this.#set({ hasBegun: true });
    } else if (this.#state.hasBegun && !this.#system.zone.has(noControl)) this.#system.arm(noControl, 0, 'mark');
    this.#system.elapse();
    if (deciding.length > 1)
      this.#recordViolation('never two agents with control', deciding.map(({ number }) => number).join(' and '));
    for (const { number } of deciding)
      if (this.#state.holder !== number && this.#machines.locksNothing !== true)
        this.#recordViolation('the agent with control has the base IDs', `${number} has not`);
    if (this.#system.zone.has(noControl)) {
      const maxMs = this.#system.zone.maxElapsedMs(noControl);
      if (maxMs > maxWithoutControlMs) this.#recordViolation('never 2 s without an agent with control', `${maxMs} ms`);
    }
    if (this.#isOver && !this.isEnding) this.#recordViolation('agents stop only by order', 'no stop was ordered');
    for (const failure of this.#system.failures) this.#recordViolation('no chart fails', failure);
  }

  get #decidingProcesses(): Process[] {
    return this.#state.processes.filter((process) => this.#isDeciding(process));
  }

  /** An agent that has given up its right to decide also responds to earlier requests. */
  get #canReply(): boolean {
    const { requestedAt } = this.#state;
    return requestedAt !== undefined && this.#isRunning(requestedAt);
  }

  /** Whether the agent whose port has a pending request has ended: a placeholder on its port has the request. */
  get #standsIn(): boolean {
    const { requestedAt = noOne } = this.#state;
    return requestedAt !== noOne && ['ended', 'reaped'].includes(this.#process(requestedAt).processState);
  }

  /** Whether its supervisor runs. */
  #isDeciding({ root, processState }: Process): boolean {
    const { supervisor } =
      (root?.getSnapshot() as { children?: Record<string, AnyActorRef> } | undefined)?.children ?? {};
    return (
      processState === 'running' && (supervisor?.getSnapshot() as { value?: unknown } | undefined)?.value === 'at work'
    );
  }

  #recordViolation(invariant: string, detail: string): void {
    this.#set({ violations: [...this.#state.violations, { invariant, detail }] });
  }

  get #isOver(): boolean {
    return this.#launcher.getSnapshot().status !== 'active';
  }

  // ---- processes

  #launcherLogic() {
    return launcherMachine.provide({
      actions: {
        startAgent: () => this.#set({ agent: this.#startProcess(false) }),
        startNewAgent: () => this.#set({ newerAgent: this.#startProcess(true) }),
        promoteNewAgent: () => this.#set({ agent: this.#state.newerAgent!, newerAgent: undefined }),
        killNewAgent: () => this.#kill(this.#state.newerAgent!),
        stopAgent: () => this.#reportEnd(this.#state.agent),
        forwardSignal: () => {
          if (this.#canPass) this.#passOrder();
          else if (this.#machines.dropsUnhandledOrders === true) this.#set({ owedBy: noOne });
        },
        forwardDeferredSignals: (_, { leaves }) => {
          if (leaves && this.#machines.ignoresPendingOrders !== true) this.#set({ owedBy: 'launcher' });
        },
      },
    });
  }

  #startProcess(succeeds: boolean): number {
    const { processes } = this.#state;
    const number = processes.length + 1;
    const process: Process = {
      ...{
        number,
        isSuccessor: succeeds,
        processState: 'booting',
        endKind: 'in order',
        leavesOrder: false,
        root: undefined,
        endIsDue: false,
      },
      ...{ calls: new Map(), knownVersion: -1 },
    };
    this.#set({ processes: [...processes, process] });
    return number;
  }

  #bootProcess(number: number): void {
    this.#changeProcess(number, { processState: 'running' });
    const { isSuccessor, endIsDue } = this.#process(number);
    const root = this.#system.start(this.#agentLogic(number), {
      id: 'agent',
      input: { settings: { ...settings, succeeds: isSuccessor } },
      created: (root) => this.#changeProcess(number, { root: root }),
    });
    if (endIsDue) this.#signal(root);
  }

  #reportEnd(number: number): void {
    const { processState, root } = this.#process(number);
    if (processState === 'running') this.#signal(root!);
    else this.#changeProcess(number, { endIsDue: true });
  }

  get #canPass(): boolean {
    const { owedBy, agent } = this.#state;
    return owedBy === 'launcher' && this.#isRunning(agent);
  }

  #passOrder(): void {
    const { agent } = this.#state;
    this.#set({ owedBy: agent });
    this.#signal(this.#process(agent).root!, 'SIGHUP');
  }

  #signal(root: AnyActorRef, signal: 'SIGTERM' | 'SIGHUP' = 'SIGTERM'): void {
    const { signals } = (root.getSnapshot() as { children: Record<string, AnyActorRef> }).children;
    if (signals !== undefined) reportEvent(signals, { type: 'signal.received', signal });
  }

  #kill(number: number): void {
    const { processState } = this.#process(number);
    if (processState === 'ended' || processState === 'reaped') return;
    this.#stopProcess(number, 'ended');
    this.#changeProcess(number, { endKind: 'killed' });
    // An order that it has received but not begun is lost with it.
    if (this.#state.owedBy === number) this.#set({ owedBy: undefined });
    this.#release(number);
  }

  #stopProcess(number: number, life: ProcessState): void {
    const { root } = this.#process(number);
    if (root !== undefined && this.#process(number).processState === 'running') {
      const timers = this.#system.timersOf(root);
      this.#system.kill(root);
      this.#system.forgetKilled(timers);
    }
    this.#changeProcess(number, { processState: life, calls: new Map() });
  }

  /** What the kernel releases after an exit. */
  #release(number: number): void {
    const { holder, link } = this.#state;
    if (holder === number) this.#set({ holder: undefined });
    if (link?.newer === number) this.#sendMessage(link.older, 'gone');
    else if (link?.older === number) this.#sendMessage(link.newer, 'gone');
  }

  #noteEnds(): void {
    for (const { number, processState, root } of this.#state.processes) {
      if (processState !== 'running' || root?.getSnapshot().status === 'active') continue;
      const { exitCode } = root!.getSnapshot().output as { exitCode: number };
      const dueOrders = dueOrdersOf(exitCode);
      this.#system.removeRoot(root!);
      this.#changeProcess(number, {
        ...{ processState: 'ended', calls: new Map() },
        ...{
          endKind: dueOrders === undefined ? 'in order' : 'gave way',
          leavesOrder: dueOrders?.includes('SIGHUP') === true,
        },
      });
      this.#release(number);
    }
  }

  #reapProcess(number: number): void {
    const { agent, link } = this.#state;
    this.#changeProcess(number, { processState: 'reaped', root: undefined });
    if (link !== undefined && [link.older, link.newer].every((end) => !this.#isThere(end)))
      this.#set({ link: undefined });
    const { endKind, leavesOrder } = this.#process(number);
    this.#launcher.send(
      number === agent ? { type: 'agent.ended', how: endKind, leaves: leavesOrder } : { type: 'new-agent.ended' },
    );
  }

  #isThere(number: number): boolean {
    return number !== noOne && this.#process(number).processState !== 'reaped';
  }

  #isRunning(number: number): boolean {
    return this.#state.processes[number - 1]?.processState === 'running';
  }

  #isWaitingNewerAgent({ number, root }: Process): boolean {
    const { context } = (root?.getSnapshot() ?? {}) as { context?: { isAnothers: boolean } };
    return number === this.#state.newerAgent && context?.isAnothers === true;
  }

  // ---- the connection, the base ids, the record

  /** Messages after the end are not read. */
  #sendMessage(to: number, message: string): void {
    const { link } = this.#state;
    if (link === undefined) return;
    if (to === link.older) this.#set({ link: { ...link, toOlder: [...link.toOlder, message] } });
    else this.#set({ link: { ...link, toNewer: [...link.toNewer, message] } });
  }

  #receiveMessages(number: number): void {
    const link = this.#state.link!;
    const isOlder = number === link.older;
    const [message = '', ...rest] = isOlder ? link.toOlder : link.toNewer;
    this.#set({ link: isOlder ? { ...link, toOlder: rest } : { ...link, toNewer: rest } });
    const actor = this.#linkOf(number, isOlder);
    if (actor === undefined) return;
    reportEvent(actor, isOlder ? toOlder(message) : toNewer(message));
  }

  #linkOf(number: number, isOlder: boolean): AnyActorRef | undefined {
    const children = (actor: AnyActorRef | undefined) =>
      (actor?.getSnapshot() as { children?: Record<string, AnyActorRef> } | undefined)?.children ?? {};
    return children(children(this.#process(number).root)[isOlder ? 'predecessor' : 'successor']).link;
  }

  #connect(newer: number): void {
    const olderProcess = this.#state.processes.find(
      ({ number, processState }) =>
        number !== newer && processState === 'running' && this.#linkOf(number, true) !== undefined,
    );
    if (olderProcess === undefined) {
      // Another process's chart receives the event later.
      this.#set({ link: { newer, older: noOne, toOlder: [], toNewer: ['gone'] } });
      return;
    }
    const toNewer = this.#machines.takesOverOnSilence === true ? ['granted'] : [];
    this.#set({ link: { newer, older: olderProcess.number, toOlder: ['ready'], toNewer } });
  }

  #write(number: number): boolean {
    const { diskIsFull, holder } = this.#state;
    if (holder !== number && this.#machines.locksNothing !== true)
      this.#recordViolation('only the agent with the base IDs writes the record', `${number} has not`);
    // An old record is worse than a missing one.
    this.#set({ record: diskIsFull ? undefined : this.#process(number).knownVersion });
    return !diskIsFull;
  }

  #claimIds(number: number, remembered: number | undefined): ClaimedIds | undefined {
    const { holder, record, currentVersion } = this.#state;
    if (holder !== undefined && holder !== number && this.#machines.locksNothing !== true) return undefined;
    const recordedState = record ?? remembered;
    if (recordedState !== undefined && recordedState < currentVersion)
      this.#recordViolation('no recorded state is lost', `${recordedState} of ${currentVersion}`);
    this.#set({ holder: number });
    this.#changeProcess(number, { knownVersion: currentVersion });
    return { baseIds: [7], sweptFiles: [], ...(recordedState !== undefined && { adoption }) };
  }

  /** A pending effect of an agent completes. */
  #respond(kind: string, number: number): void {
    const { calls, knownVersion } = this.#process(number);
    const call = calls.get(kind)!;
    const otherCalls = new Map(calls);
    otherCalls.delete(kind);
    this.#changeProcess(number, { calls: otherCalls });
    const settleWith = (claimedIds: ClaimedIds | undefined): void =>
      settleCall(
        call,
        claimedIds === undefined ? { error: new Error('another agent has the base ids') } : { value: claimedIds },
      );
    switch (kind) {
      case 'write':
        settleCall(
          call,
          this.#machines.writesNothing === true || this.#write(number)
            ? { value: undefined }
            : { error: new Error('no space left on device') },
        );
        break;
      case 'giveUp':
        if (this.#state.record !== knownVersion && this.#machines.ignoresRecord !== true) {
          settleCall(call, { error: new Error('the record is not as it should be') });
          break;
        }
        this.#set({ holder: undefined });
        settleCall(call, { value: undefined });
        break;
      case 'takeBack':
        if (this.#state.link?.older === number && this.#machines.sparesLateSuccessor !== true)
          this.#kill(this.#state.link.newer);
        settleWith(this.#claimIds(number, knownVersion));
        break;
      case 'adopt':
        this.#write(number);
        settleCall(call, { value: undefined });
        break;
      default:
        this.#claim(number, call);
    }
  }

  /** A successor requires a record; any other agent may find that another one has the base IDs. */
  #claim(number: number, call: AnyActorRef): void {
    const { holder, record } = this.#state;
    const { isSuccessor } = this.#process(number);
    const isAnothers = holder !== undefined && holder !== number;
    if (isSuccessor && record === undefined)
      settleCall(call, { error: new Error('the older agent has left no record') });
    else if (!isSuccessor && isAnothers && this.#machines.claimsOtherIds === true)
      settleCall(call, { value: { baseIds: [8], sweptFiles: [] } });
    else if (!isSuccessor && isAnothers) settleCall(call, { value: { baseIds: [], sweptFiles: [], isAnothers: true } });
    else {
      const claimedIds = this.#claimIds(number, undefined);
      settleCall(call, claimedIds ? { value: claimedIds } : { error: new Error('another agent has the base ids') });
    }
  }

  // ---- an agent

  #agentLogic(number: number) {
    const scriptedCall = <Output, Input>(name: string) =>
      scriptedPromise<Output, Input>(
        ({ self }) => this.#changeProcess(number, { calls: new Map(this.#process(number).calls).set(name, self) }),
        ({ self }) => {
          const calls = new Map(this.#process(number).calls);
          if (calls.get(name) === self) calls.delete(name);
          this.#changeProcess(number, { calls });
        },
      );
    return agentMachine.provide({
      actors: {
        signals: scriptedCallback<{ type: never }, undefined>({ start: () => {} }),
        claimBaseIds: this.#process(number).isSuccessor
          ? scriptedPromise<ClaimedIds, { succeeds: boolean }>(({ self }) =>
              settleCall(self, { value: { baseIds: [], sweptFiles: [] } }),
            )
          : scriptedCall<ClaimedIds, { succeeds: boolean }>('claim'),
        releaseBaseIds: scriptedPromise<void, { baseIds: number[]; keeps: boolean }>(({ self, input }) => {
          // All epochs have ended, and no successor needs the record.
          if (!input.keeps) this.#set({ record: undefined });
          settleCall(self, { value: undefined });
        }),
        predecessor: this.#machines.predecessor.provide({
          actors: {
            link: scriptedCallback<LinkOrder, undefined>({
              start: () => {},
              receive: (_, { type }) => {
                if (this.#state.link?.older === number)
                  this.#sendMessage(this.#state.link.newer, type === 'successor.grant' ? 'granted' : 'refused');
              },
            }),
            writeRecord: scriptedCall<void, undefined>('write'),
            giveUp: scriptedCall<void, undefined>('giveUp'),
            takeBack: scriptedCall<ClaimedIds, undefined>('takeBack'),
          },
        }),
        successor: this.#machines.successor.provide({
          actors: {
            link: scriptedCallback<TakeoverConfirm, undefined>({
              start: () => this.#connect(number),
              receive: () => {
                if (this.#state.link?.newer === number) this.#sendMessage(this.#state.link.older, 'holds');
              },
            }),
            claim: scriptedCall<ClaimedIds, SuccessorClaim>('claim'),
          },
        }),
        supervisor: standIn.provide({
          actors: { adopt: scriptedCall<void, undefined>('adopt') },
          actions: { noteRestart: () => this.#set({ owedBy: undefined }) },
        }) as never,
        certWatcher: stillWatcher as never,
      },
    });
  }

  #armNature(): void {
    const dueTimes = new Map<string, number>();
    for (const { number, processState, calls } of this.#state.processes) {
      if (processState === 'booting') dueTimes.set(`boot of ${number}`, durationsMs.boot);
      if (processState === 'ended') dueTimes.set(`reap of ${number}`, durationsMs.reap);
      for (const name of calls.keys())
        dueTimes.set(`${name} of ${number}`, durationsMs[name as keyof typeof durationsMs]);
    }
    const { link } = this.#state;
    if (link !== undefined && link.toOlder.length > 0 && this.#isRunning(link.older))
      dueTimes.set('older hears', durationsMs.hear);
    if (link !== undefined && link.toNewer.length > 0 && this.#isRunning(link.newer))
      dueTimes.set('newer hears', durationsMs.hear);
    if (this.#canPass) dueTimes.set('pass', durationsMs.pass);
    for (const name of this.#system.zone.names('within')) if (!dueTimes.has(name)) this.#system.disarm(name);
    for (const [name, ms] of dueTimes) if (!this.#system.zone.has(name)) this.#system.arm(name, ms, 'within');
  }

  #process(number: number): Process {
    return this.#state.processes[number - 1]!;
  }

  #changeProcess(number: number, change: Partial<Process>): void {
    const { processes } = this.#state;
    this.#set({ processes: processes.with(number - 1, { ...processes[number - 1]!, ...change }) });
  }

  #spendFault(): void {
    this.#set({ faults: this.#state.faults - 1 });
  }

  #set(change: Partial<State>): void {
    this.#state = { ...this.#state, ...change };
  }
}

const toOlder = (message: string): AnyEventObject =>
  message === 'ready'
    ? { type: 'successor.ready', pid: 2 }
    : message === 'holds'
      ? { type: 'successor.confirmed' }
      : { type: 'successor.lost', reason: 'it has ended' };

const toNewer = (message: string): AnyEventObject =>
  message === 'granted'
    ? { type: 'predecessor.granted' }
    : message === 'refused'
      ? { type: 'predecessor.refused', reason: 'not now' }
      : { type: 'predecessor.lost', reason: 'it has ended' };

type SupervisorStandIn = Parameters<typeof supervisorMachine.provide>[0] extends never
  ? never
  : { adoption?: Adoption };

/** Adopts running Envoys, then runs until it is ordered to end. */
const standIn = setup({
  types: {
    context: {} as { adopts: boolean },
    input: {} as SupervisorStandIn,
    output: {} as { ordered: boolean; attempts: string[] },
  },
  actors: { adopt: promiseEffect<void, undefined>('adopt') },
  guards: { adopts: ({ context }) => context.adopts },
  actions: {
    noteRestart: () => {},
    tellAdopted: sendParent({ type: 'epochs.adopted', names: [] }),
    noteBegun: assign({ adopts: false }),
  },
}).createMachine({
  id: 'supervisor',
  context: ({ input }) => ({ adopts: input.adoption !== undefined }),
  output: { ordered: true, attempts: [] },
  initial: 'idle',
  states: {
    idle: { on: { 'supervisor.start': [{ guard: 'adopts', target: 'adopting' }, { target: 'beginning' }] } },
    adopting: { invoke: { src: 'adopt', onDone: { target: 'at work', actions: ['noteBegun', 'tellAdopted'] } } },
    beginning: {
      invoke: { src: 'adopt', onDone: 'at work' },
      on: { 'supervisor.stop': 'over', 'supervisor.restart': { actions: 'noteRestart' } },
    },
    'at work': { on: { 'supervisor.stop': 'over', 'supervisor.restart': { actions: 'noteRestart' } } },
    over: { type: 'final' },
  },
});

const stillWatcher = setup({}).createMachine({ id: certWatcherMachine.id, on: { '*': {} } });
