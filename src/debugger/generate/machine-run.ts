import {
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  createActor,
  fromTransition,
  type InspectionEvent,
  setup,
} from 'xstate';
import { messageOf } from '../../runtime/errors.ts';
import { stateName } from '../../runtime/trace/statechart.ts';
import { settleCall } from '../explore/scripted-effect.ts';
import { isStandIn } from './stand-ins.ts';
import type { Expectation, Step } from './suite.ts';
import { VirtualTimers } from './virtual-timers.ts';

/** The receiver of emitted events in {@link Expectation.sent}. */
const observers = 'observers';

/** A run of one machine from `withStandIns`. Its parent and its peers (`system.get`) accept every event, and steps end its effects. */
export class MachineRun {
  readonly #timers: VirtualTimers;
  readonly #machine: AnyActorRef;
  readonly #id: string;
  #sentEvents: string[] = [];
  #takenTransitions: AnyTransitionDefinition[] = [];
  #enteredNodes = new Set<AnyStateNode>();
  #failure: unknown;

  constructor(machine: AnyStateMachine, input: unknown, inspect?: (event: InspectionEvent) => void) {
    this.#id = machine.id;
    const parent = createActor(parentOf(machine), {
      id: 'parent',
      input,
      inspect: (event) => {
        inspect?.(event);
        this.#recordEvent(event);
      },
    });
    parent.subscribe({ error: (error) => this.#fail(error) });
    this.#timers = new VirtualTimers(parent.system);
    const originalGet = parent.system.get;
    parent.system.get = ((name: never) => originalGet(name) ?? peer(name)) as typeof originalGet;
    parent.start();
    parent.send({ type: 'begin' });
    this.#machine = parent.getSnapshot().children.machine as AnyActorRef;
  }

  get snapshot(): AnyMachineSnapshot {
    return this.#machine.getSnapshot() as AnyMachineSnapshot;
  }

  get failure(): string | undefined {
    if (this.#failure !== undefined) return messageOf(this.#failure);
    const inlineActor = this.#children().find(([, actor]) => !isStandIn(actor));
    if (inlineActor === undefined) return undefined;
    return `the actor ${inlineActor[0]} is spawned from logic that is written in place: name it in setup({ actors })`;
  }

  /** The transitions of the last step, in order. */
  get takenTransitions(): readonly AnyTransitionDefinition[] {
    return this.#takenTransitions;
  }

  get activeNodes(): readonly AnyStateNode[] {
    return nodesOf(this.snapshot);
  }

  /** Includes nodes that the last step entered and left again. */
  get visitedNodes(): readonly AnyStateNode[] {
    return [...new Set([...this.#enteredNodes, ...this.activeNodes])];
  }

  get effects(): readonly string[] {
    return this.#children()
      .filter(([, actor]) => actor.getSnapshot().status === 'active')
      .map(([id]) => id)
      .sort();
  }

  /** Virtual milliseconds since the start. */
  get nowMs(): number {
    return this.#timers.nowMs;
  }

  get nextTimers(): { timers: string[]; ms: number } | undefined {
    return this.#timers.nextTimers();
  }

  pendingTimers(): string[] {
    return this.#timers.pendingTimers();
  }

  outcome(): Expectation {
    const { value, status } = this.snapshot;
    const state = this.failure === undefined ? stateName(value) : `failed: ${this.failure}`;
    return { state, done: status === 'done', sent: this.#sentEvents, running: this.effects };
  }

  /** @throws Error if the step is impossible: no such effect runs, or another timer fires first */
  runStep(step: Step): void {
    this.#sentEvents = [];
    this.#takenTransitions = [];
    this.#enteredNodes = new Set();
    switch (step.kind) {
      case 'event':
        this.#machine.send(step.event);
        break;
      case 'delay':
        this.#pass(step.ms);
        break;
      case 'done':
        settleCall(this.#effect(step.effect), { value: step.output });
        break;
      case 'error':
        settleCall(this.#effect(step.effect), { error: new Error(step.message) });
        break;
    }
  }

  /** Also checks that no timer fires before the last millisecond. */
  #pass(ms: number): void {
    const previousState = stateName(this.snapshot.value);
    const lastMs = Math.min(1, ms);
    this.#timers.pass(ms - lastMs);
    if (this.#takenTransitions.length > 0) {
      const currentState = stateName(this.snapshot.value);
      throw new Error(`${this.#id}: a timer elapsed before ${ms} ms (${previousState} → ${currentState})`);
    }
    this.#timers.pass(lastMs);
  }

  #effect(id: string): AnyActorRef {
    if (!this.effects.includes(id)) {
      const runningText = this.effects.length === 0 ? 'no effect is running' : `running: ${this.effects.join(', ')}`;
      throw new Error(
        `${this.#id}: effect ${id} is not running in state ${stateName(this.snapshot.value)}; ${runningText}`,
      );
    }
    return this.snapshot.children[id] as AnyActorRef;
  }

  #children(): [string, AnyActorRef][] {
    const children = this.snapshot.children as Record<string, AnyActorRef | undefined>;
    return Object.entries(children).flatMap(([id, actor]) => (actor === undefined ? [] : [[id, actor]]));
  }

  #recordEvent(event: InspectionEvent): void {
    switch (event.type) {
      case '@xstate.event': {
        const { sourceRef: source, actorRef: receiver } = event as unknown as {
          sourceRef?: AnyActorRef;
          actorRef: AnyActorRef;
        };
        if (source === undefined || !isMachineUnderTest(source) || isMachineUnderTest(receiver)) break;
        if (event.event.type.startsWith('xstate.error.')) this.#fail((event.event as { error?: unknown }).error);
        if (!event.event.type.startsWith('xstate.')) this.#sentEvents.push(`${event.event.type} to ${receiver.id}`);
        break;
      }
      case '@xstate.microstep':
        if (isMachineUnderTest(event.actorRef as AnyActorRef)) {
          this.#takenTransitions.push(...event._transitions);
          for (const node of nodesOf(event.snapshot as AnyMachineSnapshot)) this.#enteredNodes.add(node);
        }
        break;
      case '@xstate.action': {
        const { type, params } = event.action as { type: string; params?: { event?: { type: string } } };
        if (type === 'xstate.emit' && isMachineUnderTest(event.actorRef as AnyActorRef)) {
          this.#sentEvents.push(`${params?.event?.type} to ${observers}`);
        }
        break;
      }
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error ?? new Error('failed');
  }
}

const nodesOf = (snapshot: AnyMachineSnapshot): AnyStateNode[] => snapshot._nodes as AnyStateNode[];

const isMachineUnderTest = (actor: AnyActorRef): boolean => actor._parent?.id === 'parent' && actor.id === 'machine';

type ParentMachine = ReturnType<typeof createParentMachine>;

/** Cached, because creating a machine takes longer than many runs. */
const parents = new WeakMap<AnyStateMachine, ParentMachine>();

function parentOf(machine: AnyStateMachine): ParentMachine {
  const parent = parents.get(machine) ?? createParentMachine(machine);
  parents.set(machine, parent);
  return parent;
}

function createParentMachine(machine: AnyStateMachine) {
  return setup({
    actors: { machine },
    types: { input: {} as unknown, context: {} as { input: unknown } },
  }).createMachine({
    context: ({ input }) => ({ input }),
    initial: 'not begun',
    states: {
      'not begun': { on: { begin: 'at work' } },
      // The machine is invoked in a second state, so that its peers and timers exist when it sends events at its start.
      'at work': {
        invoke: {
          id: 'machine',
          src: 'machine',
          input: ({ context }: { context: { input: unknown } }) => context.input as never,
        },
        on: { '*': {} },
      },
    },
  });
}

function peer(name: string): AnyActorRef {
  return createActor(
    fromTransition(() => null, null),
    { id: name },
  ).start();
}
