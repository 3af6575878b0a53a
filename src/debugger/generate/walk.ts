/** Explores a machine breadth first: every step that its samples allow, from every configuration. */
import type { AnyEventObject, AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { matchesDescriptor } from '../../runtime/trace/event-descriptor.ts';
import { configurationKey, possibleSteps } from './configuration.ts';
import { MachineRun } from './machine-run.ts';
import { inputsOf, type Samples } from './samples.ts';
import { type Expectation, type Step, stepLabel } from './suite.ts';

export interface WalkLimits {
  readonly configurations: number;
  readonly depth: number;
  /** The walk stops when this returns true. */
  readonly enough?: (edge: Edge) => boolean;
}

/** A configuration of state, context, effects and timers. */
export interface Configuration {
  /** Index of the input. */
  readonly start: number;
  readonly depth: number;
  readonly edges: readonly Edge[];
  /** `undefined` for the first configuration. */
  readonly foundBy: Edge | undefined;
}

export interface Edge {
  readonly from: Configuration;
  readonly to: Configuration;
  readonly step: Step;
  readonly expect: Expectation;
  readonly chosenTransitions: readonly AnyTransitionDefinition[];
  /** If no transition was taken: the transitions whose guards refused. */
  readonly rejectedTransitions: readonly AnyTransitionDefinition[];
  /** Nodes that are active after the step, or were active during it. */
  readonly activeNodes: readonly AnyStateNode[];
}

export interface Walk {
  readonly starts: readonly WalkStart[];
  readonly configurations: readonly Configuration[];
  readonly edges: readonly Edge[];
  /** `node id event type` of every event that was sent while that state node was active. */
  readonly triedEvents: ReadonlySet<string>;
  readonly failures: readonly string[];
  readonly bounds: readonly string[];
  readonly enough: boolean;
}

export interface WalkStart {
  readonly input: unknown;
  readonly firstConfiguration: Configuration;
  readonly expect: Expectation;
  readonly activeNodes: readonly AnyStateNode[];
  readonly chosenTransitions: readonly AnyTransitionDefinition[];
}

interface Mutable extends Configuration {
  readonly edges: Edge[];
}

/**
 * @param machine from `withStandIns`
 * @throws Error if the machine fails at its start
 */
export function walk(machine: AnyStateMachine, samples: Samples, limits: WalkLimits): Walk {
  return new Walker(machine, samples, limits).walk();
}

class Walker {
  readonly #machine: AnyStateMachine;
  readonly #samples: Samples;
  readonly #limits: WalkLimits;
  readonly #configurationsByKey = new Map<string, Mutable>();
  readonly #edges: Edge[] = [];
  readonly #triedEvents = new Set<string>();
  readonly #failures = new Set<string>();
  #hasTooMany = false;
  #isTooDeep = false;
  #hasEnough = false;

  constructor(machine: AnyStateMachine, samples: Samples, limits: WalkLimits) {
    this.#machine = machine;
    this.#samples = samples;
    this.#limits = limits;
  }

  walk(): Walk {
    const starts = inputsOf(this.#samples).map((input, start) => this.#start(input, start));
    for (const configuration of this.#configurationsByKey.values()) {
      if (this.#hasEnough) break;
      this.#exploreSteps(configuration);
    }
    const { configurations, depth } = this.#limits;
    return {
      starts,
      configurations: [...this.#configurationsByKey.values()],
      edges: this.#edges,
      triedEvents: this.#triedEvents,
      failures: [...this.#failures],
      enough: this.#hasEnough,
      bounds: [
        ...(this.#hasTooMany ? [`stopped after ${configurations} configurations (--limit)`] : []),
        ...(this.#isTooDeep ? [`stopped ${depth} steps after the start (--depth)`] : []),
      ],
    };
  }

  #start(input: unknown, start: number): WalkStart {
    const run = new MachineRun(this.#machine, input);
    if (run.failure !== undefined) throw new Error(run.failure);
    const entry = {
      activeNodes: run.visitedNodes,
      chosenTransitions: [...run.takenTransitions],
      expect: run.outcome(),
    };
    return {
      input,
      firstConfiguration: this.#addConfiguration(configurationKey(run, this.#samples, start), start, undefined),
      ...entry,
    };
  }

  #runTo(configuration: Configuration): MachineRun {
    const run = new MachineRun(this.#machine, inputsOf(this.#samples)[configuration.start]);
    for (const step of stepsLeadingTo(configuration)) run.runStep(step);
    return run;
  }

  #exploreSteps(configuration: Mutable): void {
    const reachedConfiguration = this.#runTo(configuration);
    const steps = possibleSteps(reachedConfiguration, this.#samples);
    if (steps.length > 0 && configuration.depth >= this.#limits.depth) {
      this.#isTooDeep = true;
      return;
    }
    let run: MachineRun | undefined = reachedConfiguration;
    for (const step of steps) {
      run ??= this.#runTo(configuration);
      const previous = run.snapshot;
      const effectsAndTimers = effectsAndTimersOf(run);
      this.#step(configuration, run, step);
      // After an ignored event the run is unchanged and is reused.
      const isIgnored =
        run.failure === undefined &&
        run.snapshot.context === previous.context &&
        run.snapshot.children === previous.children &&
        areEqual(run.snapshot.value, previous.value) &&
        effectsAndTimersOf(run) === effectsAndTimers;
      if (!isIgnored) run = undefined;
    }
  }

  #step(from: Mutable, run: MachineRun, step: Step): void {
    const previous = run.outcome().state;
    const type = eventTypeOf(step);
    for (const node of run.activeNodes) this.#triedEvents.add(`${node.id} ${type}`);
    run.runStep(step);
    if (run.failure !== undefined) {
      this.#failures.add(`in ${previous}, ${stepLabel(step)}: ${run.failure}`);
      return;
    }
    const key = configurationKey(run, this.#samples, from.start);
    const existingConfiguration = this.#configurationsByKey.get(key);
    if (existingConfiguration === undefined && this.#configurationsByKey.size >= this.#limits.configurations) {
      this.#hasTooMany = true;
      return;
    }
    const takenTransitions = [...run.takenTransitions];
    const refusedTransitions = takenTransitions.length > 0 ? [] : guardedTransitionsOf(run.activeNodes, type);
    // No transition uses the event, so a test of it has no value.
    if (takenTransitions.length === 0 && refusedTransitions.length === 0) return;
    const observedEdge = {
      from,
      step,
      expect: run.outcome(),
      chosenTransitions: takenTransitions,
      rejectedTransitions: refusedTransitions,
      activeNodes: run.visitedNodes,
    };
    const edge: { -readonly [field in keyof Edge]: Edge[field] } = { ...observedEdge, to: from };
    edge.to = existingConfiguration ?? this.#addConfiguration(key, from.start, edge);
    from.edges.push(edge);
    this.#edges.push(edge);
    this.#hasEnough ||= this.#limits.enough?.(edge as Edge) === true;
  }

  #addConfiguration(key: string, start: number, discoveringEdge: Edge | undefined): Mutable {
    const configuration: Mutable = {
      start,
      depth: discoveringEdge === undefined ? 0 : discoveringEdge.from.depth + 1,
      edges: [],
      foundBy: discoveringEdge,
    };
    this.#configurationsByKey.set(key, configuration);
    return configuration;
  }
}

export function edgesLeadingTo(configuration: Configuration): Edge[] {
  const edges: Edge[] = [];
  for (let edge = configuration.foundBy; edge !== undefined; edge = edge.from.foundBy) edges.unshift(edge);
  return edges;
}

const stepsLeadingTo = (configuration: Configuration): Step[] => edgesLeadingTo(configuration).map(({ step }) => step);

/** A delay is identified by its timers only. */
export function eventTypeOf(step: Step): string {
  switch (step.kind) {
    case 'event':
      return (step.event as AnyEventObject).type;
    case 'done':
      return `xstate.done.actor.${step.effect}`;
    case 'error':
      return `xstate.error.actor.${step.effect}`;
    case 'delay':
      return `after ${step.timers.join(' ')}`;
  }
}

function guardedTransitionsOf(active: readonly AnyStateNode[], type: string): AnyTransitionDefinition[] {
  return active
    .flatMap((node) => [...node.transitions])
    .filter(([descriptor]) => descriptor !== '' && matchesDescriptor(type, descriptor))
    .flatMap(([, definitions]) => definitions);
}

const effectsAndTimersOf = (run: MachineRun): string => [...run.effects, ...run.pendingTimers()].join();

const areEqual = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
