/** Reads traces in slices that do not block the page. */
import { batch, type Signal } from '@preact/signals';
import type { Diagram } from '../../src/debugger/diagram/diagram.ts';
import { parseDiagram } from '../../src/debugger/diagram/parse.ts';
import type { Session, Source } from '../../src/debugger/page-data.ts';
import { messageOf } from '../../src/runtime/errors.ts';
import type { TraceHeader } from '../../src/runtime/trace/trace.ts';
import type { Address } from './address.ts';
import { connection, connectionNotice, source, sources } from './connection.ts';
import { marks } from './marks.ts';
import { chosenActor, elapsedMs, followsEnd, place, range, recording, session, size } from './place.ts';
import { InvalidTraceLine, TraceParser } from './recording/incoming-trace.ts';
import { PageRecording } from './recording/recording.ts';
import { droppedName, loadSession, traceTexts } from './source-data.ts';
import { recordDrawn, yieldToBrowser } from './time/frames.ts';
import { programTime, setProgramClock, updateClock } from './time/program-clock.ts';

const sliceMs = 25;
const firstRetryMs = 500;
const maxRetryMs = 10_000;
/** At this number of records, a page that follows a live program reloads, with the last records that the program keeps. */
const maxRecords = 400_000;

/** From opening the latest source until its trace was read completely. */
export let openDurationMs: number | undefined;

let openController = new AbortController();

export async function openSource(number: number, address: Address = {}): Promise<void> {
  const requestedSource = sources.value[number];
  // A link to a missing source keeps the open trace.
  if (requestedSource === undefined && recording.value !== undefined) {
    connectionNotice.value = missingSourceText(number);
    return;
  }
  const returnToPrevious = returnToCurrent(number);
  openController.abort();
  openController = new AbortController();
  const { signal } = openController;
  openDurationMs = undefined;
  batch(() => {
    source.value = number;
    recording.value = undefined;
    session.value = undefined;
    size.value = 0;
    place.value = -1;
    elapsedMs.value = 0;
    chosenActor.value = address.actor;
    range.value = undefined;
    marks.value = address.marks ?? [];
    connection.value =
      requestedSource === undefined
        ? { kind: 'failed', reason: missingSourceText(number) }
        : { kind: 'opening', records: 0 };
    connectionNotice.value = undefined;
  });
  if (requestedSource !== undefined)
    await new SourceReader(number, requestedSource, address, signal, returnToPrevious).run();
}

function missingSourceText(number: number): string {
  const name = droppedName(number);
  if (name === undefined) return `Source ${number} does not exist.`;
  return `File ${name} is no longer loaded. Open it again.`;
}

/** If the next source is unavailable, the current trace is more useful than an error. */
function returnToCurrent(nextSource: number): ((reason: string) => void) | undefined {
  const [number, openRecording, connectionState] = [source.value, recording.value, connection.value];
  const isReopened = number === nextSource && sources.value[number]?.kind === 'live';
  if (openRecording === undefined || connectionState.kind === 'opening' || isReopened) return undefined;
  const restoreActions = [
    restoreSignal(session),
    restoreSignal(recording),
    restoreSignal(size),
    restoreSignal(place),
    restoreSignal(elapsedMs),
    restoreSignal(chosenActor),
    restoreSignal(range),
    restoreSignal(marks),
    restoreSignal(followsEnd),
  ];
  return (reason) => {
    batch(() => {
      source.value = number;
      for (const restore of restoreActions) restore();
      connection.value = connectionState;
      connectionNotice.value = reason;
    });
    const chosenSource = sources.value[number];
    if (chosenSource === undefined || (connectionState.kind !== 'live' && connectionState.kind !== 'lost')) return;
    // The stream was closed because the other source was opened.
    connection.value = { kind: 'lost', reason: 'another source was opened', retryAt: performance.now() };
    void new SourceReader(number, chosenSource, {}, openController.signal, undefined).run();
  };
}

function restoreSignal<Value>(savedSignal: Signal<Value>): () => void {
  const value = savedSignal.peek();
  return () => {
    savedSignal.value = value;
  };
}

export function reopenSource(): void {
  const actor = chosenActor.value;
  void openSource(source.value, actor === undefined ? {} : { actor });
}

class SourceReader {
  readonly #number: number;
  readonly #source: Source;
  readonly #signal: AbortSignal;
  readonly #startedAt = performance.now();
  /** Address of a link, until its record is read. */
  #targetAddress: Address | undefined;
  #retryMs = firstRetryMs;
  #frame = 0;
  /** Opens the trace with the records read so far. */
  #onShown: (() => void) | undefined;
  #lastDrawnSeq = 0;
  /** Set until a part of this source is shown. */
  #returnToPrevious: ((why: string) => void) | undefined;

  constructor(
    number: number,
    source: Source,
    targetAddress: Address,
    signal: AbortSignal,
    goBack: ((why: string) => void) | undefined,
  ) {
    this.#returnToPrevious = goBack;
    this.#number = number;
    this.#source = source;
    this.#targetAddress =
      targetAddress.record === undefined && targetAddress.range === undefined ? undefined : targetAddress;
    this.#signal = signal;
    followsEnd.value = source.kind === 'live' && targetAddress.record === undefined;
  }

  async run(): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        const shouldReadAgain = await this.#readOnce();
        if (!shouldReadAgain) return;
      } catch (error) {
        if (this.#signal.aborted) return;
        const reason =
          error instanceof TypeError ? `the server of this page does not respond (${error.message})` : messageOf(error);
        if (this.#returnToPrevious !== undefined && this.#onShown === undefined) {
          this.#returnToPrevious(
            `${this.#source.name} cannot be opened: ${reason}. The previous trace is still shown.`,
          );
          return;
        }
        if (error instanceof InvalidTraceLine || this.#source.kind === 'file') {
          this.#complete({ kind: 'failed', reason });
          return;
        }
        await this.#pause(reason);
      }
    }
  }

  /** Returns whether to read again from the start. */
  async #readOnce(): Promise<boolean> {
    const stream = new TraceParser();
    let grows: PageRecording | undefined;
    for await (const text of traceTexts(this.#number, this.#signal)) {
      stream.push(text);
      for (;;) {
        const deadline = performance.now() + sliceMs;
        const { records, lines } = stream.read(() => performance.now() < deadline);
        if (grows === undefined && stream.header !== undefined) grows = await this.#beginReading(stream.header);
        if (records.length === 0) break;
        grows!.append(records, lines);
        this.#publish(grows!);
        if (performance.now() >= deadline) await yieldToBrowser();
        if (this.#signal.aborted) return false;
      }
      if (this.#source.kind === 'live' && (grows?.length ?? 0) > maxRecords) {
        connectionNotice.value = `More than ${maxRecords.toLocaleString('en')} records received. Older records were discarded.`;
        return true;
      }
    }
    const { records, lines } = stream.end();
    grows?.append(records, lines);
    if (grows === undefined) throw new InvalidTraceLine(1, 'missing header; the trace is empty');
    if (this.#source.kind === 'live') this.#complete({ kind: 'ended' });
    else this.#complete({ kind: 'complete', cutOffLines: stream.cutOffLines });
    return false;
  }

  async #beginReading(header: TraceHeader): Promise<PageRecording> {
    const loadedSession = await loadSession(this.#number, header, this.#signal);
    const newRecording = new PageRecording(header, diagramsOf(loadedSession));
    this.#onShown = () => this.#showRecording(newRecording, loadedSession);
    // A file is shown once it is complete, because growing views would slow down reading.
    if (this.#source.kind === 'live') {
      setProgramClock(header.startedAt, loadedSession.now);
      this.#onShown();
    }
    return newRecording;
  }

  #showRecording(newRecording: PageRecording, loadedSession: Session): void {
    this.#onShown = undefined;
    this.#returnToPrevious = undefined;
    const previousSeq = recording.value?.seqAt(place.value);
    if (this.#targetAddress === undefined && previousSeq !== undefined && !followsEnd.value)
      this.#targetAddress = { record: previousSeq };
    this.#lastDrawnSeq = 0;
    this.#retryMs = firstRetryMs;
    batch(() => {
      session.value = loadedSession;
      recording.value = newRecording;
      size.value = 0;
      place.value = -1;
      elapsedMs.value = 0;
      if (this.#source.kind === 'live') connection.value = { kind: 'live' };
    });
  }

  #publish(newRecording: PageRecording): void {
    if (this.#source.kind === 'file') {
      connection.value = { kind: 'opening', records: newRecording.length };
      return;
    }
    if (this.#frame !== 0) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      // The connection may have been lost and restored in between.
      const openRecording = recording.value;
      if (openRecording === undefined || this.#signal.aborted) return;
      const lastTime = openRecording.timeAt(openRecording.length - 1);
      updateClock(lastTime);
      batch(() => {
        size.value = openRecording.length;
        this.#goToTargetAddress(openRecording);
        if (!followsEnd.value) return;
        place.value = openRecording.length - 1;
        elapsedMs.value = Math.max(0, (programTime() ?? lastTime) - lastTime);
      });
      this.#recordDrawn(openRecording);
    });
  }

  /** Must be called in the frame that shows the new records. */
  #recordDrawn(openRecording: PageRecording): void {
    if (followsEnd.value) recordDrawn(seqsFrom(openRecording, this.#lastDrawnSeq));
    this.#lastDrawnSeq = openRecording.length;
  }

  #complete(
    end: { kind: 'complete'; cutOffLines: readonly number[] } | { kind: 'ended' } | { kind: 'failed'; reason: string },
  ): void {
    batch(() => {
      this.#onShown?.();
      const openRecording = recording.value;
      connection.value = end;
      if (openRecording === undefined) return;
      size.value = openRecording.length;
      this.#goToTargetAddress(openRecording);
      if (this.#targetAddress?.record !== undefined) {
        connectionNotice.value = `Record ${this.#targetAddress.record} of the link is not in this trace.`;
      }
      this.#recordDrawn(openRecording);
      if (followsEnd.value) place.value = openRecording.length - 1;
      else if (place.value === -1 && this.#source.kind === 'file') place.value = initialPlace(openRecording);
      chosenActor.value ??= initialActor(openRecording, place.value);
      followsEnd.value = false;
    });
    openDurationMs ??= performance.now() - this.#startedAt;
  }

  #goToTargetAddress(openRecording: PageRecording): void {
    const { record, range: seqs } = this.#targetAddress ?? {};
    if (seqs !== undefined) {
      const [first, last] = seqs.map((seq) => openRecording.indexOf(seq));
      if (first !== undefined && last !== undefined) range.value = [first, last];
    }
    const index = record === undefined ? undefined : openRecording.indexOf(record);
    if (index !== undefined) place.value = index;
    if (index !== undefined || (record === undefined && range.value !== undefined)) this.#targetAddress = undefined;
    else if (record !== undefined && this.#source.kind === 'live' && (openRecording.seqAt(0) ?? 0) > record) {
      connectionNotice.value = `Record ${record} of the link was discarded by the program.`;
      this.#targetAddress = undefined;
    }
  }

  async #pause(reason: string): Promise<void> {
    const ms = this.#retryMs;
    this.#retryMs = Math.min(ms * 2, maxRetryMs);
    connection.value = { kind: 'lost', reason, retryAt: performance.now() + ms };
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

function seqsFrom(pageRecording: PageRecording, from: number): number[] {
  return Array.from({ length: pageRecording.length - from }, (_, i) => pageRecording.seqAt(from + i)!);
}

/** The first deviation, else the last restart, else the end. */
function initialPlace(pageRecording: PageRecording): number {
  const restarts = pageRecording.lanes.lanes
    .flatMap(({ marks }) => marks)
    .filter(({ kind }) => kind === 'restart' || kind === 'retry');
  return pageRecording.deviations[0]?.index ?? restarts.at(-1)?.index ?? pageRecording.length - 1;
}

/** Chooses the actor at the initial place of a merged trace, because its programs have no common first actor. */
function initialActor(pageRecording: PageRecording, index: number): string | undefined {
  if (pageRecording.header.programs === undefined || index < 0) return undefined;
  const actor = pageRecording.subjectAt(index);
  const owner = actor.split('/')[0]!;
  return pageRecording.machineOf(owner) === undefined ? undefined : owner;
}

/** An unreadable diagram is skipped, because the trace is useful without it. */
function diagramsOf({ diagrams }: Session): Diagram[] {
  return diagrams.flatMap(({ file, text }) => {
    try {
      return [parseDiagram(text, file)];
    } catch (error) {
      connectionNotice.value = messageOf(error);
      return [];
    }
  });
}
