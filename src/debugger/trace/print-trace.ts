import type { ContextChange, TraceRecord } from '../../runtime/trace/trace.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import type { CauseChain, CauseKind, CauseLink, CauseOrigin } from './cause-chain.ts';
import { foldChain } from './fold-chain.ts';

export interface PrintOptions {
  /** If set, wall-clock times (UTC) are printed instead of milliseconds since the start. */
  readonly startedAt?: string;
}

const maxPayloadLength = 160;
/** Maximum length of a changed value, so that several are visible. */
const maxValueLength = 60;

export function formatRecord(record: TraceRecord, options: PrintOptions = {}): string {
  const cause = 'cause' in record && record.cause !== undefined ? `  ← ${record.cause}` : '';
  return `${formatPosition(record, options)}  ${visibleLine(recordText(record))}${cause}`;
}

/** Nearest causes first; repetitions are shown once. */
export function formatCauses(record: TraceRecord, { links, origin }: CauseChain, options: PrintOptions = {}): string[] {
  const margin = ' '.repeat(formatPosition(record, options).length);
  let previousRecord = record;
  const steps = foldChain(links).flatMap((chainPart) => {
    const lines = chainPart.links.map((link) => {
      const step = causeText(link, previousRecord);
      previousRecord = link.record;
      return `${formatPosition(link.record, options)}  ← ${visibleLine(`${step}${recordText(link.record)}`)}`;
    });
    const lastRepetition = chainPart.repetitions.at(-1);
    if (lastRepetition === undefined) return lines;
    previousRecord = lastRepetition.record;
    return [
      ...lines,
      `${margin}  … and ${chainPart.times - 1} × the same before, back to ${lastRepetition.record.seq}`,
    ];
  });
  return [
    `${formatPosition(record, options)}  ${visibleLine(recordText(record))}`,
    ...steps,
    `${margin}  ${origins[origin]}`,
  ];
}

type EffectCauseKind = 'received' | 'spawned' | 'owner-state' | 'owner-received';

const effectCauses: Readonly<Record<EffectCauseKind, string>> = {
  received: 'last event that it received',
  spawned: 'started by',
  'owner-state': 'in the state of its parent that was entered by',
  'owner-received': 'last event that its parent received',
};

const stepsBack: Readonly<Record<Exclude<CauseKind, EffectCauseKind>, string>> = {
  cause: '',
  'timer-started': 'timer started by: ',
  'ended-by': 'ended after: ',
};

const origins: Readonly<Record<CauseOrigin, string>> = {
  outside: 'Sent from outside the program.',
  start: 'Start of the program.',
  lost: 'Earlier causes are not in the trace.',
  long: '… further causes are omitted.',
};

function causeText({ how }: CauseLink, record: TraceRecord): string {
  if (how === 'cause' || how === 'timer-started' || how === 'ended-by') return stepsBack[how];
  const effect = record.kind === 'event' ? record.from : 'actor' in record ? record.actor : '';
  return `output of effect ${effect}, ${effectCauses[how]}: `;
}

export function formatPosition({ seq, t }: TraceRecord, { startedAt }: PrintOptions): string {
  const time = startedAt === undefined ? t.toFixed(3).padStart(13) : clockText(startedAt, t);
  return `${String(seq).padStart(7)} ${time}`;
}

function clockText(startedAt: string, t: number): string {
  const timeMs = Date.parse(startedAt) + t;
  return Number.isFinite(timeMs) && Math.abs(timeMs) < 8.64e15 ? new Date(timeMs).toISOString() : `${t.toFixed(3)} ms`;
}

function recordText(record: TraceRecord): string {
  switch (record.kind) {
    case 'spawn': {
      const machine = record.machine === undefined ? '' : ` (machine ${record.machine})`;
      return `${record.parent ?? 'outside'} → ${record.actor}: spawn${machine}${payload(record.input)}`;
    }
    case 'event': {
      const { type, ...otherFields } = record.event;
      const undeliveredText = record.undelivered === true ? '  (not delivered: the actor had stopped)' : '';
      return `${record.from} → ${record.to}: ${type}${payload(otherFields)}${undeliveredText}`;
    }
    case 'timer-started':
      return `${record.actor}: timer ${record.timer} started: ${duration(record.ms)}${record.state === '' ? '' : ` in [${record.state}]`}`;
    case 'timer':
      return `${record.actor}: timer ${record.timer} elapsed`;
    case 'transition':
      return `${record.actor}: [${record.from}] → [${record.to}] on ${triggerText(record.on)}${changesText(record.change)}`;
    case 'step':
      return `${record.actor}: no state change, on ${triggerText(record.on)}${changesText(record.change)}`;
    case 'unexpected':
      return `${record.actor}: unexpected event ${triggerText(record.on)} in [${record.state}]`;
    case 'log':
      return `${record.actor} log ${record.level === 'info' ? '' : `(${record.level}) `}│ ${record.text}`;
    case 'effect':
      return `${record.actor}: action ${record.effect}${payload(record.params)}`;
    case 'stop':
      return `${record.actor}: ${record.status}${payload(record.output)}${record.error === undefined ? '' : ` ${record.error}`}`;
  }
}

/** XState's name of an elapsed delay repeats the state that it belongs to. */
function triggerText(eventType: string): string {
  return eventType.replace(/^xstate\.after\.([^.]+)\..*$/, 'timer $1');
}

function changesText(change: readonly ContextChange[] | undefined): string {
  if (!Array.isArray(change) || change.length === 0) return '';
  const texts = (change as readonly ContextChange[]).map(({ path, ...otherFields }) => {
    const field = path === '' ? 'context' : String(path).replace(/^\//, '');
    return 'value' in otherFields
      ? `${field} = ${shorten(JSON.stringify(otherFields.value), maxValueLength)}`
      : `${field} removed`;
  });
  return `  (${shorten(texts.join(', '), maxPayloadLength)})`;
}

function payload(value: unknown): string {
  const text = value === undefined ? '{}' : JSON.stringify(value);
  return text === '{}' ? '' : ` ${shorten(text, maxPayloadLength)}`;
}

function shorten(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function duration(ms: number): string {
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}
