/** Runs the steps of a test on a machine with its peers. */
import { isDeepStrictEqual } from 'node:util';
import { type AnyActorRef, type AnyStateMachine, setup } from 'xstate';
import type { PreparedEpoch } from '../../machines/agent/envoy/epoch.machine.ts';
import type { GeneratedTest, Step } from '../../src/debugger/generate/suite.ts';
import { stepLabel } from '../../src/debugger/generate/suite.ts';
import { eventTypeOf } from '../../src/debugger/generate/walk.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder, type Recorder } from '../../src/runtime/trace/recorder.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { StepNotPossible, type TestSession } from './driver.ts';
import type { Limit } from './limit.ts';
import { type MachineOccurrence, Occurrences } from './occurrences.ts';

/** Triggers the steps of a machine on a host. */
export interface StepTriggers {
  /** Time limit for a triggered event. */
  readonly limit: Limit;
  /** Triggers a step; spontaneous events need nothing. */
  trigger(step: Step, rest: readonly Step[]): void | Promise<void>;
  /** Events that may precede a step, because the step or a peer causes them. */
  ignores(occurrence: MachineOccurrence, step: Step): boolean;
  /** {@link TestSession.finalDeviation}, given the state after the last step. */
  finalDeviation?(state: string): Promise<string | undefined>;
  /** Stops the peers. */
  end(): Promise<void>;
}

/** The machine below a scripted parent and next to scripted peers, with a virtual clock. */
export class Company {
  readonly clock = new VirtualClock();
  readonly machine: AnyActorRef;
  /** Events of the tested actor. */
  occurrences: Occurrences;
  failure: unknown;
  readonly #root: AnyActorRef;
  readonly #recorder: Recorder;

  /** @param name of the machine's actor in the trace */
  constructor(machine: AnyStateMachine, name: string, input: unknown, peers: readonly string[] = []) {
    const recorder = createRecorder({ program: 'generated', now: () => this.clock.now() });
    this.#recorder = recorder;
    this.occurrences = new Occurrences(recorder, name);
    const peer = setup({}).createMachine({ on: { '*': {} } });
    const parent = setup({ actors: { machine, peer } }).createMachine({
      on: { '*': {} },
      invoke: [
        ...peers.map((id) => ({ id, src: 'peer' as const, systemId: id })),
        { id: name, src: 'machine' as const, input: () => input as never },
      ],
    });
    this.#root = startRoot(parent, {
      id: 'parent',
      input: undefined,
      recorder,
      clock: this.clock as never,
      onError: (error) => {
        this.failure = error;
      },
    }) as AnyActorRef;
    this.machine = this.#root.getSnapshot().children[name];
  }

  /** Switches the test to another machine that is about to be invoked, and follows it to its final state. */
  follow(name: string): void {
    this.occurrences = new Occurrences(this.#recorder, name);
  }

  /** Advances time until a timer of the machine is due, but at most by `ms`. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.clock.now() + ms;
    const start = this.occurrences.count;
    for (let next = this.clock.pendingDelays()[0]; next !== undefined && this.clock.now() + next <= untilMs; ) {
      this.clock.fireNext();
      if (this.occurrences.count > start) return;
      await Promise.resolve();
      next = this.clock.pendingDelays()[0];
    }
  }

  stop(): void {
    (this.#root as AnyActorRef & { stop(): void }).stop();
  }
}

/** A session of a machine with its peers. */
export function sessionOf(company: Company, test: GeneratedTest, ways: StepTriggers): TestSession {
  const { occurrences } = company;
  // Skips earlier events, which led the peers to this state.
  let cursor = occurrences.count;
  let takenSteps = 0;
  const takeStep = async (step: Step): Promise<string> => {
    const laterSteps = test.steps.slice(++takenSteps).map((testStep) => testStep.do);
    let brought = false;
    for (;;) {
      const occurrence = occurrences.at(cursor);
      if (occurrence === undefined) {
        if (!brought) {
          brought = true;
          await ways.trigger(step, laterSteps);
        } else {
          await occurrences.next(ways.limit);
          if (occurrences.at(cursor) === undefined) throw notTriggered(step);
        }
        continue;
      }
      cursor++;
      if (isStep(step, occurrence)) {
        if (!hasSameFields(step, occurrence)) throw new StepNotPossible(`${stepText(step)} comes for another reason`);
        return occurrences.stateAfter(cursor - 1);
      }
      if (!ways.ignores(occurrence, step)) {
        throw new StepNotPossible(`${wordsOf(occurrence)} comes before ${stepText(step)}`);
      }
    }
  };
  return {
    take: takeStep,
    finalDeviation: async () => ways.finalDeviation?.(occurrences.stateAfter(cursor - 1)),
    async end() {
      company.stop();
      await ways.end();
      if (company.failure !== undefined) throw company.failure;
    },
  };
}

/** Whether the occurrence is the step, and about the same epoch. */
function isStep(step: Step, { type, event }: MachineOccurrence): boolean {
  if (type !== eventTypeOf(step)) return false;
  return step.kind !== 'event' || step.event.name === undefined || step.event.name === event?.name;
}

/** Compares the fields that affect decisions. The cause of the event may differ from the test. */
function hasSameFields(step: Step, { event }: MachineOccurrence): boolean {
  if (step.kind === 'done') return step.output === undefined || hasSameResult(step.effect, step.output, event?.output);
  if (step.kind !== 'event') return true;
  const { event: expected } = step;
  return (decisive[expected.type] ?? []).every((field) => expected[field] === event?.[field]);
}

/** Fields of each event type that affect the machine's decisions. */
const decisive: Readonly<Record<string, readonly string[]>> = {
  'child.abort': ['reason'],
  'epoch.failed': ['refusedByParent'],
  'desired.changed': ['isOutdated'],
  'epochs.changed': ['nothingToDrain', 'adminPort'],
};

/** Compares only the kind of a bootstrap result, because its path differs each time. */
function hasSameResult(effect: string, expected: unknown, actual: unknown): boolean {
  if (effect !== 'prepare') return isDeepStrictEqual(expected, actual);
  // The fields of a prepared bootstrap differ, too.
  return Object.keys(expected as PreparedEpoch)[0] === Object.keys((actual ?? {}) as PreparedEpoch)[0];
}

const notTriggered = (step: Step): StepNotPossible => new StepNotPossible(`nothing brings ${stepText(step)}`);

/** Reason text without the number of the epoch, so that equal reasons can be counted. */
const stepText = (step: Step): string => stepLabel(step).replaceAll(/epoch-\d+b?/g, 'epoch-N');
const wordsOf = ({ type }: MachineOccurrence): string => type.replaceAll(/epoch-\d+b?/g, 'epoch-N');
