/** A single machine as a world for the explorer. Its choices are the inputs and all steps that its samples allow. */
import type { AnyStateMachine, InspectionEvent } from 'xstate';
import { createRecorder } from '../../runtime/trace/recorder.ts';
import type { TraceSink } from '../../runtime/trace/trace.ts';
import type { ExplorationSubject } from '../explore/explore-command.ts';
import type { InvariantViolation, World, WorldChoice } from '../explore/world.ts';
import { configurationKey, possibleSteps } from './configuration.ts';
import { MachineRun } from './machine-run.ts';
import { inputsOf, type Samples } from './samples.ts';
import { withStandIns } from './stand-ins.ts';
import { type Step, stepLabel } from './suite.ts';

/** A guard, an action or an unhandled effect of the machine violates this invariant if it throws. */
const failureInvariant = 'the machine does not fail';

/** Limits the time, because the context of a machine may grow with each event, and the number of states with it. */
const defaultLimits = { ms: 60_000 };

export function exploreMachine(machine: AnyStateMachine, samples: Samples): ExplorationSubject {
  const isolatedMachine = withStandIns(machine);
  const inputs = inputsOf(samples).length;
  return {
    bounds: { [inputs === 1 ? 'input' : 'inputs']: inputs },
    defaultLimits,
    beginWorld: () => new MachineWorld(isolatedMachine, samples),
    writeTrace(path, sink: TraceSink) {
      let world: MachineWorld | undefined;
      const recorder = createRecorder({
        program: machine.id,
        machines: [machine],
        sinks: [sink],
        now: () => world?.now ?? 0,
      });
      world = new MachineWorld(isolatedMachine, samples, recorder.inspect);
      for (const choice of path) world.apply(choice);
      recorder.close();
    },
  };
}

class MachineWorld implements World {
  readonly #machine: AnyStateMachine;
  readonly #samples: Samples;
  readonly #inspect: ((event: InspectionEvent) => void) | undefined;
  #path: readonly string[] = [];
  #run: { readonly start: number; readonly machine: MachineRun } | undefined;
  #failure: string | undefined;
  readonly spawnCount = 0;
  readonly isEnding = false;

  constructor(machine: AnyStateMachine, samples: Samples, inspect?: (event: InspectionEvent) => void) {
    this.#machine = machine;
    this.#samples = samples;
    this.#inspect = inspect;
    if (inputsOf(samples).length === 1) this.#start(0);
  }

  get now(): number {
    return this.#run?.machine.nowMs ?? 0;
  }

  choices(): readonly WorldChoice[] {
    return [...this.#steps().keys()].map((name) => ({ name, free: false }));
  }

  apply(choice: string): void {
    const step = this.#steps().get(choice);
    if (step === undefined) throw new Error(`'${choice}' is not possible here`);
    this.#path = [...this.#path, choice];
    if (typeof step === 'number') {
      this.#start(step);
      return;
    }
    try {
      this.#run!.machine.runStep(step);
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
    }
  }

  key(): string {
    if (this.#run === undefined) return 'not started';
    return this.#failure ?? configurationKey(this.#run.machine, this.#samples, this.#run.start);
  }

  get violations(): readonly InvariantViolation[] {
    if (this.#run === undefined) return [];
    const { machine } = this.#run;
    const failure = this.#failure ?? machine.failure;
    if (failure !== undefined) return [{ invariant: failureInvariant, detail: failure }];
    const { value, context } = machine.snapshot;
    return Object.entries(this.#samples.invariants ?? {}).flatMap(([invariant, isSatisfied]) => {
      const holdsResult = isSatisfied({ value, context });
      if (holdsResult === true) return [];
      return [
        {
          invariant,
          detail: typeof holdsResult === 'string' ? holdsResult : `false in state ${machine.outcome().state}`,
        },
      ];
    });
  }

  /** The returned function replays the choices, which is fast because a single machine is small and its runs are short. */
  save(): () => void {
    const path = this.#path;
    return () => {
      this.#path = [];
      this.#run = undefined;
      this.#failure = undefined;
      if (inputsOf(this.#samples).length === 1) this.#start(0);
      for (const choice of path) this.apply(choice);
    };
  }

  #start(start: number): void {
    const machine = new MachineRun(this.#machine, inputsOf(this.#samples)[start], this.#inspect);
    this.#run = { start, machine };
  }

  /** A number is the index of the input to start with. */
  #steps(): Map<string, Step | number> {
    if (this.#run === undefined) {
      return new Map(
        inputsOf(this.#samples).map((input, start) => [`start ${start + 1} ${JSON.stringify(input)}`, start]),
      );
    }
    if (this.#failure !== undefined) return new Map();
    return new Map(possibleSteps(this.#run.machine, this.#samples).map((step) => [nameOf(step), step]));
  }
}

function nameOf(step: Step): string {
  const { kind, ...stepFields } = step;
  const label = stepLabel(step);
  if (step.kind === 'event') {
    const { type, ...payload } = step.event;
    return Object.keys(payload).length === 0 ? label : `${label} ${JSON.stringify(payload)}`;
  }
  if (step.kind === 'done') return step.output === undefined ? label : `${label}: ${JSON.stringify(step.output)}`;
  return kind === 'error' ? `${label}: ${(stepFields as { message: string }).message}` : label;
}
