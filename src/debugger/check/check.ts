/**
 * Checks a trace against sequence diagrams, with the semantics of live sequence charts (`docs/sequence-diagrams.md`).
 */
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import type { Diagram } from '../diagram/diagram.ts';
import { type Contract, contractOf, type ExpectedMessage, expectedMessage } from './contract.ts';
import { type ActivationCounts, DiagramMonitor, type RefusedMessage } from './diagram-monitor.ts';
import { type Message, MessageReader } from './message.ts';
import { type MessageKind, MessageKinds } from './message-kinds.ts';

export interface Deviation {
  /**
   * `out-of-order`: the message is in the alphabet of a live activation, which allows a different one. `unexpected`: diagrams contain the message,
   * but no activation is at a position that allows it. `undeclared`: no diagram contains the message, although its sender and receiver take part in
   * diagrams.
   */
  kind: 'out-of-order' | 'unexpected' | 'undeclared';
  message: Message;
  /** `undefined` for an undeclared message. */
  diagram?: {
    file: string;
    /** The line of the expected arrow, or of the arrow that occurred at the wrong time. */
    line: number;
    n?: string;
    /** Numbers of the record that began the activation and of the last one that it accepted. */
    startedAt?: number;
    lastAccepted?: number;
  };
  expected: ExpectedMessage[];
  /** Oldest first. */
  before: Message[];
}

export interface TraceCheckReport {
  /** `counts.departures` is their total number. */
  departures: Deviation[];
  counts: {
    departures: number;
    /** Records read, including those that are no messages. */
    records: number;
    /** Messages that an activation accepted, that began one, or that interrupted one. */
    accepted: number;
    /**
     * `internal`: messages of XState. `unknownActor`: messages of actors that are in no diagram. `notInDiagrams`: spawns, timers and ends that no
     * diagram names.
     */
    ignored: { internal: number; unknownActor: number; notInDiagrams: number };
    /** Records that are missing before the first record or between two records. */
    lost: number;
  };
  /** Message counts of the actors that are in no diagram, by series (`epoch-N/process`), highest first. */
  ignoredActors: { series: string; messages: number }[];
  diagrams: ({ file: string } & ActivationCounts)[];
  /** Diagrams that are not checked because the trace omits messages that they contain. */
  notChecked: { file: string; omitted: string[] }[];
}

const maxPreviousMessages = 4;
/** Limits the memory: a live check of a faulty program may run for days. */
const maxKeptDeviations = 1_000;
const maxSeries = 200;
const otherSeries = 'others';
const noDeviation: readonly Deviation[] = [];

/** Checks the records of one trace in order, also while it is written (`recorder.observe(checker.feed)`). */
export class TraceChecker {
  readonly #monitors: readonly DiagramMonitor[];
  readonly #kinds: MessageKinds;
  readonly #messages: MessageReader;
  readonly #deviations: Deviation[] = [];
  readonly #counts = {
    departures: 0,
    records: 0,
    accepted: 0,
    internal: 0,
    unknownActor: 0,
    notInDiagrams: 0,
    lost: 0,
  };
  readonly #ignoredActors = new Map<string, number>();
  readonly #notChecked: TraceCheckReport['notChecked'];
  #previousMessages: readonly Message[] = [];
  #lastSeq = 0;

  /** @param header lists the actors that lived before the first record, and the omitted messages */
  constructor(diagrams: readonly Diagram[], header: Pick<TraceHeader, 'actors' | 'omits'> = {}) {
    const contracts = diagrams.map(contractOf);
    const omittedIn = ({ alphabet }: Contract): string[] => [
      ...new Set(alphabet.flatMap(({ type }) => (header.omits?.includes(type) === true ? [type] : []))),
    ];
    const uncheckedContracts: Contract[] = [];
    const notChecked: { readonly file: string; readonly omitted: string[] }[] = [];
    this.#monitors = contracts.flatMap((contract) => {
      const omittedItems = omittedIn(contract);
      if (omittedItems.length === 0) return new DiagramMonitor(contract);
      uncheckedContracts.push(contract);
      notChecked.push({ file: contract.diagram.file, omitted: omittedItems });
      return [];
    });
    this.#notChecked = notChecked;
    this.#kinds = new MessageKinds(this.#monitors, uncheckedContracts);
    this.#messages = new MessageReader(header.actors);
  }

  readonly feed = (record: TraceRecord): readonly Deviation[] => {
    this.#counts.records++;
    if (record.seq !== this.#lastSeq + 1) this.#countLost(record.seq);
    this.#lastSeq = record.seq;
    const message = this.#messages.read(record);
    const deviations = message === undefined ? noDeviation : this.#check(message);
    if (record.kind === 'stop' && record.status !== 'done') {
      for (const monitor of this.#monitors) monitor.onActorEnded(record.actor);
    }
    if (deviations.length > 0) this.#keepDeviations(deviations);
    return deviations;
  };

  /** Live activations are no deviation: a trace may end at any time. */
  report(): TraceCheckReport {
    const { internal, unknownActor, notInDiagrams, ...counts } = this.#counts;
    return {
      departures: [...this.#deviations],
      counts: { ...counts, ignored: { internal, unknownActor, notInDiagrams } },
      ignoredActors: [...this.#ignoredActors]
        .map(([series, messages]) => ({ series, messages }))
        .sort((a, b) => b.messages - a.messages),
      diagrams: this.#monitors.map((monitor) => ({ file: monitor.contract.diagram.file, ...monitor.counts() })),
      notChecked: [...this.#notChecked],
    };
  }

  /** The returned function can be called repeatedly, so that one checker can follow several runs with a common beginning. */
  save(): () => void {
    const monitors = this.#monitors.map((monitor) => monitor.save());
    const messages = this.#messages.save();
    const deviations = this.#deviations.length;
    const counts = { ...this.#counts };
    const ignoredActors = [...this.#ignoredActors];
    const previousMessages = this.#previousMessages;
    const lastSeq = this.#lastSeq;
    return () => {
      for (const restore of monitors) restore();
      messages();
      this.#deviations.length = deviations;
      Object.assign(this.#counts, counts);
      this.#ignoredActors.clear();
      for (const [series, count] of ignoredActors) this.#ignoredActors.set(series, count);
      this.#previousMessages = previousMessages;
      this.#lastSeq = lastSeq;
    };
  }

  /** Checkers with the same key return the same results for all further records. */
  key(): string {
    return this.#monitors.map((monitor) => monitor.key()).join('|');
  }

  #countLost(seq: number): void {
    const lostCount = seq - this.#lastSeq - 1;
    if (lostCount <= 0) return;
    this.#counts.lost += lostCount;
    for (const monitor of this.#monitors) monitor.onRecordsLost();
  }

  #keepDeviations(deviations: readonly Deviation[]): void {
    this.#counts.departures += deviations.length;
    this.#deviations.push(...deviations.slice(0, maxKeptDeviations - this.#deviations.length));
  }

  #check(message: Message): readonly Deviation[] {
    const kind = this.#kinds.kindOf(message);
    const { occurrences, category } = kind;
    if (occurrences.length === 0 && category !== 'undeclared') {
      this.#countIgnored(kind);
      return noDeviation;
    }
    let acceptedCount = 0;
    let confirm: (() => void) | undefined;
    const deviations: Deviation[] = [];
    for (const [monitor, occurrence] of occurrences) {
      const result = monitor.handleMessage(message, occurrence);
      if (result.accepted) acceptedCount++;
      confirm ??= result.confirm;
      for (const refusal of result.refusals) deviations.push(this.#outOfOrderDeviation(message, monitor, refusal));
    }
    const isAccepted = acceptedCount > 0;
    // Without this uncertain activation the message would be a deviation, so the activation becomes certain.
    if (acceptedCount === 1) confirm?.();
    if (category === 'undeclared')
      deviations.push({ kind: 'undeclared', message, expected: [], before: [...this.#previousMessages] });
    else if (isAccepted) this.#counts.accepted++;
    else if (category !== 'declared') this.#countIgnored(kind);
    else if (deviations.length === 0) deviations.push(this.#unexpectedMessage(message, kind));
    if (category === 'declared' || deviations.length > 0)
      this.#previousMessages = [...this.#previousMessages.slice(1 - maxPreviousMessages), message];
    return deviations;
  }

  #countIgnored({ category, unknownActors }: MessageKind): void {
    if (category === 'declared' || category === 'undeclared') return;
    this.#counts[category]++;
    for (const name of unknownActors) {
      const series = this.#ignoredActors.has(name) || this.#ignoredActors.size < maxSeries ? name : otherSeries;
      this.#ignoredActors.set(series, (this.#ignoredActors.get(series) ?? 0) + 1);
    }
  }

  #outOfOrderDeviation(message: Message, monitor: DiagramMonitor, refusal: RefusedMessage): Deviation {
    const { expected, n, startedAt, lastAccepted } = refusal;
    const file = monitor.contract.diagram.file;
    return {
      kind: 'out-of-order',
      message,
      diagram: { file, line: expected[0]?.line ?? 1, ...(n !== 'free' && { n }), startedAt, lastAccepted },
      expected,
      before: [...this.#previousMessages],
    };
  }

  #unexpectedMessage(message: Message, kind: MessageKind): Deviation {
    const matchingOccurrences = kind.occurrences.filter(([, { steps }]) => steps.length > 0);
    const [monitor, { steps }] = matchingOccurrences[0]!;
    const { symbol, n } = steps[0]!;
    const line = monitor.contract.alphabet[symbol]!.lines[0]!;
    return {
      kind: 'unexpected',
      message,
      diagram: { file: expectedMessage(monitor.contract, symbol, line, n).file, line },
      expected: matchingOccurrences.flatMap(([other, occurrence]) =>
        other.expectedMessages(occurrence.steps.map((step) => step.n)),
      ),
      before: [...this.#previousMessages],
    };
  }
}

export function checkTrace(
  diagrams: readonly Diagram[],
  records: Iterable<TraceRecord>,
  header: Pick<TraceHeader, 'actors'> = {},
): TraceCheckReport {
  const checker = new TraceChecker(diagrams, header);
  for (const record of records) checker.feed(record);
  return checker.report();
}
