import { setTimeout as sleep } from 'node:timers/promises';
import { chooseRunDir } from '../runtime/files/run-dir.ts';
import type { AgentProgram } from './agent-program.ts';
import { BaseIdTable } from './envoy/base-ids/base-id-table.ts';
import { EnvoyBinaries } from './envoy/envoy-binaries.ts';
import { ProcessTable } from './envoy/process-table.ts';
import { AgentRecord } from './envoy/record/agent-record.ts';
import { KeptPorts } from './ports/kept-ports.ts';
import { isStartedByLauncher, SignalInbox } from './signals.ts';

/** An agent that stops or throws leaves no Envoy and no shared memory. */
export class SafetyNet {
  readonly table = new ProcessTable();
  readonly baseIds = new BaseIdTable();
  readonly binaries: EnvoyBinaries;
  /** The next agent reads the record if this one is killed; `undefined` without live restore. */
  readonly record: AgentRecord | undefined;
  /** These ports stay open while no agent runs; `undefined` without live restore. */
  readonly ports: KeptPorts | undefined;
  /** The inbox is active until the process ends, so that no signal interrupts the clean-up or changes the exit code. */
  readonly signals: SignalInbox;
  readonly #onExit = (): void => {
    if (this.table.isHandedOver) return;
    this.table.killAll();
    this.ports?.close();
    this.record?.close();
    this.baseIds.releaseAll();
  };

  constructor({ binary, options, succeeds }: AgentProgram) {
    // Until this agent has control, an older agent may take back the Envoys that this one adopts.
    if (succeeds) this.table.handOver();
    this.binaries = new EnvoyBinaries(binary);
    this.record = options.liveRestore
      ? new AgentRecord(chooseRunDir(options.runDir, options.config.configPath))
      : undefined;
    this.ports = this.record && new KeptPorts(this.record.directory);
    process.once('exit', this.#onExit);
    this.signals = new SignalInbox({ terminalIsAnothers: isStartedByLauncher(options.env) });
  }

  async cleanUp(): Promise<ReturnType<ProcessTable['list']>> {
    if (this.table.isHandedOver) {
      this.baseIds.handOverAll();
      this.binaries.close();
      process.off('exit', this.#onExit);
      return [];
    }
    // The charts have already waited for Envoys to exit.
    const leftoverProcesses = await this.table.endAll(lastLimitMs);
    // After two signals, the agent does not wait for a pending claim, whose result is released anyway.
    await Promise.race([this.baseIds.waitUntilSettled(), sleep(maxClaimWaitMs, undefined, { ref: false })]);
    this.ports?.close();
    this.record?.close();
    this.baseIds.releaseAll();
    this.binaries.close();
    process.off('exit', this.#onExit);
    return leftoverProcesses;
  }
}

const maxClaimWaitMs = 500;
const lastLimitMs = 2_000;
