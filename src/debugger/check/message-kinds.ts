/** Matches messages with diagrams by sender, receiver and type. The results are cached, because they do not depend on the state of the check. */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { Diagram, Interruption } from '../diagram/diagram.ts';
import { type Binding, matchName, type NamePattern } from '../diagram/name-pattern.ts';
import { bindEnds, type Contract, contractOf, type MessageMatch, type Occurrence, occurrenceOf } from './contract.ts';
import { DiagramMonitor } from './diagram-monitor.ts';
import { type Message, MessageReader } from './message.ts';

export interface MessageKind {
  readonly occurrences: readonly (readonly [DiagramMonitor, Occurrence])[];
  /** `undeclared`: no arrow of a diagram matches the message, although its sender and receiver take part in diagrams. */
  readonly category: 'declared' | 'undeclared' | 'internal' | 'unknownActor' | 'notInDiagrams';
  /** Series of the message's actors that are in no diagram. */
  readonly unknownActors: readonly string[];
}

/** Limits the memory for a trace of many connections. */
const maxCached = 50_000;

interface TypeKind {
  readonly arrows: readonly { readonly monitor: DiagramMonitor; readonly symbol: number }[];
  readonly interruptions: readonly { readonly monitor: DiagramMonitor; readonly interruption: Interruption }[];
  readonly kindsByEnds: Map<string, MessageKind>;
}

export class MessageKinds {
  readonly #monitors: readonly DiagramMonitor[];
  readonly #uncheckedContracts: readonly Contract[];
  readonly #names: readonly NamePattern[];
  readonly #types = new Map<string, TypeKind>();
  readonly #isKnownByActor = new Map<string, boolean>();
  #cachedCount = 0;

  /** @param uncheckedContracts contracts with messages that the trace omits */
  constructor(monitors: readonly DiagramMonitor[], uncheckedContracts: readonly Contract[] = []) {
    this.#monitors = monitors;
    this.#uncheckedContracts = uncheckedContracts;
    this.#names = monitors.flatMap(({ contract }) => contract.diagram.participants.map(({ name }) => name));
  }

  kindOf(message: Message): MessageKind {
    const type = this.#typeKindOf(message.type);
    const endsKey = `${message.from} ${message.to}`;
    const cachedKind = type.kindsByEnds.get(endsKey);
    if (cachedKind !== undefined) return cachedKind;
    if (this.#cachedCount++ >= maxCached) this.#clearCache();
    const kind = this.#classify(message, type);
    type.kindsByEnds.set(endsKey, kind);
    return kind;
  }

  isKnownActor(actor: string): boolean {
    let isKnownActor = this.#isKnownByActor.get(actor);
    if (isKnownActor === undefined) {
      isKnownActor = this.#names.some((name) => matchName(name, actor) !== undefined);
      if (this.#isKnownByActor.size >= maxCached) this.#isKnownByActor.clear();
      this.#isKnownByActor.set(actor, isKnownActor);
    }
    return isKnownActor;
  }

  #clearCache(): void {
    this.#cachedCount = 0;
    this.#types.clear();
  }

  #typeKindOf(type: string): TypeKind {
    const cachedType = this.#types.get(type);
    if (cachedType !== undefined) return cachedType;
    const kind: TypeKind = {
      arrows: this.#monitors.flatMap((monitor) =>
        monitor.contract.alphabet.flatMap((arrow, symbol) => (arrow.type === type ? [{ monitor, symbol }] : [])),
      ),
      interruptions: this.#monitors.flatMap((monitor) =>
        monitor.contract.diagram.interruptions
          .filter((interruption) => interruption.type === '*' || interruption.type === type)
          .map((interruption) => ({ monitor, interruption })),
      ),
      kindsByEnds: new Map(),
    };
    this.#types.set(type, kind);
    return kind;
  }

  #classify(message: Message, type: TypeKind): MessageKind {
    const matchesByMonitor = new Map<DiagramMonitor, { steps: MessageMatch[]; interruptions: Binding[] }>();
    const partOf = (monitor: DiagramMonitor) => {
      const matches = matchesByMonitor.get(monitor) ?? { steps: [], interruptions: [] };
      matchesByMonitor.set(monitor, matches);
      return matches;
    };
    let isDeclared = false;
    for (const { monitor, symbol } of type.arrows) {
      const n = bindEnds(monitor.contract.alphabet[symbol]!, message);
      if (n === undefined) continue;
      partOf(monitor).steps.push({ symbol, n });
      isDeclared = true;
    }
    for (const { monitor, interruption } of type.interruptions) {
      const n = bindEnds(interruption, message);
      if (n !== undefined) partOf(monitor).interruptions.push(n);
    }
    const occurrences = [...matchesByMonitor].map(
      ([monitor, { steps, interruptions }]) => [monitor, occurrenceOf(monitor.contract, steps, interruptions)] as const,
    );
    if (isDeclared) return { occurrences, category: 'declared', unknownActors: [] };
    const isUnchecked = this.#uncheckedContracts.some(({ alphabet }) =>
      alphabet.some((arrow) => arrow.type === message.type && bindEnds(arrow, message) !== undefined),
    );
    if (isUnchecked) return { occurrences, category: 'notInDiagrams', unknownActors: [] };
    return { occurrences, ...this.#classifyUnmatched(message) };
  }

  /** A message that no arrow matches may still interrupt activations. */
  #classifyUnmatched({ from, to, type }: Message): Pick<MessageKind, 'category' | 'unknownActors'> {
    if (isInternal(type)) return { category: 'internal', unknownActors: [] };
    const unknownEnds = [from, to].filter((actor) => !this.isKnownActor(actor));
    if (unknownEnds.length > 0)
      return { category: 'unknownActor', unknownActors: [...new Set(unknownEnds.map(seriesOf))] };
    return { category: isEvent(type) ? 'undeclared' : 'notInDiagrams', unknownActors: [] };
  }
}

/** Reads only the messages that the check compares with the diagrams. */
export class CheckedMessages {
  readonly #messages: MessageReader;
  readonly #kinds: MessageKinds;

  constructor(diagrams: readonly Diagram[], header: Pick<TraceHeader, 'actors'> = {}) {
    this.#messages = new MessageReader(header.actors);
    this.#kinds = new MessageKinds(diagrams.map((diagram) => new DiagramMonitor(contractOf(diagram))));
  }

  read(record: TraceRecord): Message | undefined {
    const message = this.#messages.read(record);
    if (message === undefined) return undefined;
    const { category } = this.#kinds.kindOf(message);
    return category === 'declared' || category === 'undeclared' ? message : undefined;
  }
}

/** Spawns, timers and ends are checked only if a diagram names them, because a machine may have other ones. */
function isEvent(type: string): boolean {
  return type !== 'spawn' && type !== 'done' && !type.startsWith('timer ');
}

/** `xstate.error.…` is not internal, because an unexpected failure of an actor is a deviation. */
function isInternal(type: string): boolean {
  return type.startsWith('xstate.') && !type.startsWith('xstate.error.');
}

/** `epoch-3/process` is in the series `epoch-N/process`. */
function seriesOf(actor: string): string {
  return actor.replaceAll(/-\d+[a-z]?(?=\/|$)/g, '-N');
}
