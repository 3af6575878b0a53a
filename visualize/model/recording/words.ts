import type { Deviation } from '../../../src/debugger/check/check.ts';
import { subjectOf } from '../../../src/debugger/trace/record-list.ts';
import type { TraceRecord } from '../../../src/runtime/trace/trace.ts';

/** Returns text such as `850 ms`, `12.3 s`, `2 min 05 s`, `3 h 12 min`. */
export function durationText(ms: number): string {
  if (ms < 0) return `−${durationText(-ms)}`;
  if (ms < 1_000) return `${ms < 10 && !Number.isInteger(ms) ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${twoDigits(seconds % 60)} s`;
  const minutes = Math.floor(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} min`;
}

/** Returns text such as `0:12.345` or `1:02:03.004`. */
export function clockText(t: number): string {
  const ms = Math.floor(t);
  const seconds = Math.floor(ms / 1_000);
  const hours = Math.floor(seconds / 3_600);
  const minutes = Math.floor(seconds / 60) % 60;
  const secondsText = `${twoDigits(seconds % 60)}.${String(ms % 1_000).padStart(3, '0')}`;
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${secondsText}` : `${minutes}:${secondsText}`;
}

/** Time in the user's time zone, such as `03:12:07.123`; on another day than the start, with the date: `Aug 3 03:12:07.123`. */
export function wallClockText(startedAt: string, t: number): string {
  const date = new Date(Date.parse(startedAt) + t);
  if (Number.isNaN(date.getTime())) return '';
  const day = dayText(startedAt, t);
  return `${day === dayText(startedAt, 0) ? '' : `${day} `}${timeOfDay(date)}`;
}

/** Returns text such as `Aug 3`; with the year if it differs from the start's. */
export function dayText(startedAt: string, t: number): string {
  const start = new Date(startedAt);
  const date = new Date(start.getTime() + t);
  if (Number.isNaN(date.getTime())) return '';
  const year = date.getFullYear() === start.getFullYear() ? '' : ` ${date.getFullYear()}`;
  return `${months[date.getMonth()]} ${date.getDate()}${year}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const;

/** Steps below a second have milliseconds. The date is added where a day begins, and at the first tick if its day is not the start's. */
export function wallClockTicks(startedAt: string, times: readonly number[], step: number): string[] {
  let shownDay = dayText(startedAt, 0);
  return times.map((t) => {
    const day = dayText(startedAt, t);
    if (day === '') return '';
    const time = timeOfDay(new Date(Date.parse(startedAt) + t));
    if (day === shownDay) return step < 1_000 ? time : time.slice(0, 8);
    shownDay = day;
    return `${day} ${step < 1_000 ? time : time.slice(0, 5)}`;
  });
}

function timeOfDay(date: Date): string {
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** `running.settled` → [[`running`, `settled`]]. */
export function regionsOf(state: string): string[][] {
  return state === '' ? [] : state.split(' | ').map((path) => path.split('.'));
}

export function stateText(state: string): string {
  return regionsOf(state)
    .map((path) => path.at(-1)!)
    .join(', ');
}

export const actorOf = subjectOf;

export function isAbout(record: TraceRecord, actor: string): boolean {
  if (record.kind === 'event') return record.to === actor || record.from === actor;
  return record.actor === actor || (record.kind === 'spawn' && record.parent === actor);
}

/** Returns text such as `settled → deciding` or `config.changed`. */
export function actionText(record: TraceRecord): string {
  switch (record.kind) {
    case 'spawn':
      return record.machine === undefined ? 'started (effect)' : 'started';
    case 'event':
      return `${eventText(record.event.type)}${record.undelivered === true ? ', not delivered' : ''}`;
    case 'timer-started':
      return `timer ${record.timer} started: ${durationText(record.ms)}`;
    case 'timer':
      return `timer ${record.timer} elapsed`;
    case 'transition':
      return record.from === ''
        ? `started in ${stateText(record.to)}`
        : `${stateText(record.from)} → ${stateText(record.to)}`;
    case 'step':
      return `no state change, on ${eventText(record.on)}`;
    case 'effect':
      return `action ${record.effect}`;
    case 'stop':
      return record.status === 'error' ? `failed: ${record.error ?? 'reason unknown'}` : endingTexts[record.status];
    case 'unexpected':
      return `unexpected event ${eventText(record.on)} in state ${stateText(record.state)}`;
    case 'log':
      return record.text;
  }
}

const endingTexts = { done: 'done', stopped: 'stopped' } as const;

/** Returns text such as `cert-watcher → supervisor: config.changed`. */
export function recordText(record: TraceRecord): string {
  if (record.kind === 'event') return `${record.from} → ${record.to}: ${actionText(record)}`;
  if (record.kind === 'spawn' && record.parent !== undefined) return `${record.parent} started ${record.actor}`;
  return `${record.actor}: ${actionText(record)}`;
}

export function eventText(type: string): string {
  const [, timer] = /^xstate\.after\.([^.]+)\./.exec(type) ?? [];
  if (timer !== undefined) return `timer ${timer}`;
  const [, outcome, actor] = /^xstate\.(done|error)\.(?:actor|state)\.(.+)$/.exec(type) ?? [];
  if (outcome !== undefined) return `${actor} ${outcome === 'done' ? 'done' : 'failed'}`;
  return type === 'xstate.init' ? 'start' : type;
}

export function deviationText({ kind, message, expected, diagram }: Deviation): string {
  const text = `${message.from} → ${message.to}: ${message.type}`;
  if (kind === 'undeclared') return `${text} is in no sequence diagram, although both actors are`;
  const [firstExpected] = expected;
  const expectation =
    firstExpected === undefined ? '' : `; expected ${firstExpected.from} → ${firstExpected.to}: ${firstExpected.type}`;
  const alternatives = expected.length > 1 ? ` (or ${expected.length - 1} other)` : '';
  const location = diagram === undefined ? '' : ` (${diagram.file.split('/').at(-1)}:${diagram.line})`;
  return `${text} ${kind === 'out-of-order' ? 'is out of order' : 'is not allowed here'}${expectation}${alternatives}${location}`;
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0');
}
