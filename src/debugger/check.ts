/** Checks a trace against sequence diagrams, as live sequence charts are read: `docs/sequence-diagrams.md`. */
import type { TraceRecord } from '../runtime/trace.ts';
import { bindEnds, contractOf, type ExpectedMessage, expectedMessage, type Step } from './contract.ts';
import type { Diagram, Interruption } from './diagram/diagram.ts';
import { type Binding, matchName, type NamePattern } from './diagram/name-pattern.ts';
import { type ActivationCounts, type Concern, DiagramMonitor, type Refusal } from './diagram-monitor.ts';
import { type Message, MessageReader } from './message.ts';

export interface Departure {
  /**
   * `out-of-order`: a live activation speaks about the message and allows another one. `unexpected`: diagrams speak about
   * it, none is at a place where it may come. `undeclared`: its ends take part in diagrams, and no diagram has the message.
   */
  kind: 'out-of-order' | 'unexpected' | 'undeclared';
  message: Message;
  /** The diagram that the message departs from, and the place to look at; undefined for an undeclared message. */
  diagram?: {
    file: string;
    /** The line of what was expected, or of the arrow that came at the wrong time. */
    line: number;
    /** N of the activation. */
    n?: string;
    /** The record that began the activation, and the last one that it accepted. */
    startedAt?: number;
    lastAccepted?: number;
  };
  /** What the diagrams allow instead, by line. */
  expected: ExpectedMessage[];
  /** The messages before it, oldest first. */
  before: Message[];
}

export interface CheckReport {
  departures: Departure[];
  counts: {
    /** Records read, messages or not. */
    records: number;
    /** Messages that some activation took, began with, or was interrupted by. */
    accepted: number;
    /** Messages that no rule concerns: XState's own, those of actors that no diagram names, spawns and such that none names. */
    ignored: { internal: number; unknownActor: number; notInDiagrams: number };
    /** Records that are missing in the trace: before its first one, or in between. */
    lost: number;
  };
  diagrams: ({ file: string } & ActivationCounts)[];
}

/** Messages kept for showing what came before a departure. */
const remembered = 4;
/** Names and types repeat; a trace of many connections must still not fill the memory. */
const maxCached = 50_000;

/** What is known of all messages with the same ends and type. */
interface Kind {
  concerns: [DiagramMonitor, Concern][];
  /** Whether an arrow of some diagram says it, whatever the state of things. */
  declared: boolean;
}

/**
 * Follows a trace record by record; also while it is written (`recorder.observe(checker.feed)`). A checker serves one
 * trace.
 */
export class TraceChecker {
  readonly #monitors: readonly DiagramMonitor[];
  readonly #names: readonly NamePattern[];
  readonly #arrows = new Map<string, { monitor: DiagramMonitor; symbol: number }[]>();
  readonly #interruptions: readonly { monitor: DiagramMonitor; interruption: Interruption }[];
  readonly #messages = new MessageReader();
  readonly #kinds = new Map<string, Kind>();
  readonly #known = new Map<string, boolean>();
  readonly #departures: Departure[] = [];
  readonly #counts: CheckReport['counts'] = {
    records: 0,
    accepted: 0,
    ignored: { internal: 0, unknownActor: 0, notInDiagrams: 0 },
    lost: 0,
  };
  #before: Message[] = [];
  #lastSeq = 0;

  constructor(diagrams: readonly Diagram[]) {
    this.#monitors = diagrams.map((diagram) => new DiagramMonitor(contractOf(diagram)));
    this.#names = diagrams.flatMap((diagram) => diagram.participants.map((participant) => participant.name));
    this.#interruptions = this.#monitors.flatMap((monitor) =>
      monitor.contract.diagram.interruptions.map((interruption) => ({ monitor, interruption })),
    );
    for (const monitor of this.#monitors) {
      monitor.contract.alphabet.forEach(({ type }, symbol) => {
        const same = this.#arrows.get(type);
        if (same === undefined) this.#arrows.set(type, [{ monitor, symbol }]);
        else same.push({ monitor, symbol });
      });
    }
  }

  /** Takes the next record; answers the departures that it is. */
  readonly feed = (record: TraceRecord): readonly Departure[] => {
    this.#counts.records++;
    this.#countLost(record.seq);
    const message = this.#messages.read(record);
    const departures = message === undefined ? [] : this.#check(message);
    if (record.kind === 'stop' && record.status !== 'done') {
      for (const monitor of this.#monitors) monitor.actorEnded(record.actor);
    }
    this.#departures.push(...departures);
    return departures;
  };

  /** How things stand after the records so far. That activations are live is no fault: a trace may end at any time. */
  report(): CheckReport {
    return {
      departures: [...this.#departures],
      counts: structuredClone(this.#counts),
      diagrams: this.#monitors.map((monitor) => ({ file: monitor.contract.diagram.file, ...monitor.counts() })),
    };
  }

  /**
   * Takes note of how things stand; the function that is returned brings that back, as often as it is called: one checker can
   * follow runs that begin alike.
   */
  save(): () => void {
    const monitors = this.#monitors.map((monitor) => monitor.save());
    const messages = this.#messages.save();
    const departures = this.#departures.length;
    const counts = structuredClone(this.#counts);
    const before = this.#before;
    const lastSeq = this.#lastSeq;
    return () => {
      for (const restore of monitors) restore();
      messages();
      this.#departures.length = departures;
      Object.assign(this.#counts, structuredClone(counts));
      this.#before = before;
      this.#lastSeq = lastSeq;
    };
  }

  /** Identity: two checkers with the same key judge the same of all that may follow. */
  key(): string {
    return this.#monitors.map((monitor) => monitor.key()).join('|');
  }

  #countLost(seq: number): void {
    const lost = seq - this.#lastSeq - 1;
    this.#lastSeq = seq;
    if (lost <= 0) return;
    this.#counts.lost += lost;
    for (const monitor of this.#monitors) monitor.recordsLost();
  }

  #check(message: Message): readonly Departure[] {
    const kind = this.#kindOf(message);
    let accepted = false;
    const departures: Departure[] = [];
    for (const [monitor, concern] of kind.concerns) {
      const taken = monitor.take(message, concern);
      accepted ||= taken.accepted;
      for (const refusal of taken.refusals) departures.push(this.#outOfOrder(message, monitor, refusal));
    }
    const undeclared = kind.declared ? undefined : this.#undeclared(message);
    if (undeclared !== undefined) departures.push(undeclared);
    else if (accepted) this.#counts.accepted++;
    else if (!kind.declared) this.#ignore(message);
    else if (departures.length === 0) departures.push(this.#unexpected(message, kind));
    if (kind.declared || departures.length > 0) this.#before = [...this.#before.slice(1 - remembered), message];
    return departures;
  }

  /** Whether an interruption speaks about it or not: what passes between participants has its place in a diagram. */
  #undeclared(message: Message): Departure | undefined {
    const { from, to, type } = message;
    if (!isEvent(type) || isInternal(type) || !this.#isKnown(from) || !this.#isKnown(to)) return undefined;
    return { kind: 'undeclared', message, expected: [], before: this.#before };
  }

  #ignore({ from, to, type }: Message): void {
    const { ignored } = this.#counts;
    if (isInternal(type)) ignored.internal++;
    else if (!this.#isKnown(from) || !this.#isKnown(to)) ignored.unknownActor++;
    else ignored.notInDiagrams++;
  }

  #outOfOrder(message: Message, monitor: DiagramMonitor, refusal: Refusal): Departure {
    const { expected, n, startedAt, lastAccepted } = refusal;
    const file = monitor.contract.diagram.file;
    return {
      kind: 'out-of-order',
      message,
      diagram: { file, line: expected[0]?.line ?? 1, ...(n !== 'free' && { n }), startedAt, lastAccepted },
      expected,
      before: this.#before,
    };
  }

  #unexpected(message: Message, kind: Kind): Departure {
    const speaking = kind.concerns.filter(([, { steps }]) => steps.length > 0);
    const [monitor, { steps }] = speaking[0]!;
    const { symbol, n } = steps[0]!;
    const line = monitor.contract.alphabet[symbol]!.lines[0]!;
    return {
      kind: 'unexpected',
      message,
      diagram: { file: expectedMessage(monitor.contract, symbol, line, n).file, line },
      expected: speaking.flatMap(([other, concern]) => other.expected(concern.steps.map((step) => step.n))),
      before: this.#before,
    };
  }

  #kindOf(message: Message): Kind {
    const key = `${message.type} ${message.from} ${message.to}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) return known;
    const kind = this.#classify(message);
    if (this.#kinds.size >= maxCached) this.#kinds.clear();
    this.#kinds.set(key, kind);
    return kind;
  }

  #classify(message: Message): Kind {
    const concerns = new Map<DiagramMonitor, { steps: Step[]; interruptions: Binding[] }>();
    const concern = (monitor: DiagramMonitor) => {
      const found = concerns.get(monitor) ?? { steps: [], interruptions: [] };
      concerns.set(monitor, found);
      return found;
    };
    let declared = false;
    for (const { monitor, symbol } of this.#arrows.get(message.type) ?? []) {
      const n = bindEnds(monitor.contract.alphabet[symbol]!, message);
      if (n === undefined) continue;
      concern(monitor).steps.push({ symbol, n });
      declared = true;
    }
    for (const { monitor, interruption } of this.#interruptions) {
      if (interruption.type !== '*' && interruption.type !== message.type) continue;
      const n = bindEnds(interruption, message);
      if (n !== undefined) concern(monitor).interruptions.push(n);
    }
    return { concerns: [...concerns], declared };
  }

  #isKnown(actor: string): boolean {
    const known = this.#known.get(actor) ?? this.#names.some((name) => matchName(name, actor) !== undefined);
    if (this.#known.size >= maxCached) this.#known.clear();
    this.#known.set(actor, known);
    return known;
  }
}

/** Checks a whole trace. */
export function checkTrace(diagrams: readonly Diagram[], records: Iterable<TraceRecord>): CheckReport {
  const checker = new TraceChecker(diagrams);
  for (const record of records) checker.feed(record);
  return checker.report();
}

/** Spawns, timers and ends are checked where a diagram names them; a machine may have others. */
function isEvent(type: string): boolean {
  return type !== 'spawn' && type !== 'done' && !type.startsWith('timer ');
}

/** What XState tells actors itself, except that an actor failed: nobody expecting that is a fault worth knowing. */
function isInternal(type: string): boolean {
  return type.startsWith('xstate.') && !type.startsWith('xstate.error.');
}
