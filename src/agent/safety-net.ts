/** What lies outside the statecharts, and holds whatever becomes of them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import type { AgentProgram } from './agent-program.ts';
import { BaseIdTable } from './envoy/base-ids/base-id-table.ts';
import { EnvoyBinaries } from './envoy/envoy-binaries.ts';
import { ProcessTable } from './envoy/process-table.ts';
import { AgentRecord } from './envoy/record/agent-record.ts';
import { KeptPorts } from './ports/kept-ports.ts';
import { SignalInbox, startedByLauncher } from './signals.ts';

/**
 * What lies outside the statecharts: the processes that were started, and the base ids. Whatever ends the agent in good
 * order or by an exception, no Envoy and no shared memory is left. (Killed, the kernel ends the Envoys, and the next
 * agent sweeps.)
 */
export class SafetyNet {
  readonly table = new ProcessTable();
  readonly baseIds = new BaseIdTable();
  /** What Envoys are started from, held until the program is over. */
  readonly binaries: EnvoyBinaries;
  /** What the next agent is left, if this one is killed; undefined: nothing outlives it. */
  readonly record: AgentRecord | undefined;
  /** Ports that stay open while no agent is there; undefined: none. */
  readonly ports: KeptPorts | undefined;
  /** Open from before the charts until the process is over: no signal cuts a clean-up short, or changes the exit code. */
  readonly signals: SignalInbox;
  readonly #onExit = (): void => {
    if (this.table.letsGo) return;
    this.table.killAll();
    this.ports?.end();
    this.record?.close();
    this.baseIds.releaseAll();
  };

  constructor({ binary, options, succeeds }: AgentProgram) {
    // Until this agent holds, an older one goes on with what this one adopts.
    if (succeeds) this.table.letGo();
    this.binaries = new EnvoyBinaries(binary);
    this.record = options.liveRestore
      ? new AgentRecord(chooseRunDir(options.runDir, options.config.configPath))
      : undefined;
    this.ports = this.record && new KeptPorts(this.record.directory);
    process.once('exit', this.#onExit);
    this.signals = new SignalInbox({ terminalIsAnothers: startedByLauncher(options.env) });
  }

  async cleanUp(): Promise<ReturnType<ProcessTable['list']>> {
    if (this.table.letsGo) {
      this.baseIds.letGoAll();
      this.binaries.close();
      process.off('exit', this.#onExit);
      return [];
    }
    // The charts have given them their time.
    const left = await this.table.endAll(lastLimitMs);
    // An agent that was told to end twice does not wait for its claim: what that gets is released all the same.
    await Promise.race([this.baseIds.settled(), sleep(maxClaimWaitMs, undefined, { ref: false })]);
    this.ports?.end();
    this.record?.close();
    this.baseIds.releaseAll();
    this.binaries.close();
    process.off('exit', this.#onExit);
    return left;
  }
}

/** How long a claim that is under way is waited for: it takes some sockets, and some milliseconds. */
const maxClaimWaitMs = 500;
/** How long an Envoy that was left over may take to end of a SIGKILL. */
const lastLimitMs = 2_000;
